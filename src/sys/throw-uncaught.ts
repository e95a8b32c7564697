// A bug is loud, wherever it was found: in a promise that nobody waits for, or in a callback of the system's.

/** Ends the engine, as an exception that nobody catches does. */
export function crash(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
