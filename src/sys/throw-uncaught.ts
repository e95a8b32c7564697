// Makes bugs in callbacks, and in promises that nobody awaits, end the process.

/** Throws outside of any promise, so that the process ends. */
export function crash(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
