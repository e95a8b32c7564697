// To wait for something no longer than a time, and to leave no timer behind.

/** Whether it came in time. `cut` takes the rest of the time away. */
export function within(promise: Promise<unknown>, ms: number, cut?: AbortSignal): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const end = (inTime: boolean): void => {
      clearTimeout(timer);
      cut?.removeEventListener('abort', late);
      resolve(inTime);
    };
    const late = (): void => end(false);
    const timer = setTimeout(late, ms);
    cut?.addEventListener('abort', late);
    if (cut?.aborted === true) late();
    promise.then(() => end(true), reject);
  });
}
