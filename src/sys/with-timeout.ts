// Waits with a time limit; no timer is left behind.

export interface TimeLimit {
  readonly timeoutMs?: number;
  /** Ends the wait early. */
  readonly givenUp?: Promise<unknown> | undefined;
  readonly signal?: AbortSignal;
}

/** `ended` resolves at the limit. `cancel` clears the timer. */
export function timeLimit({ timeoutMs, givenUp, signal }: TimeLimit): {
  readonly ended: Promise<null>;
  readonly cancel: () => void;
} {
  let timer: NodeJS.Timeout | undefined;
  let end = (): void => {};
  const ended = new Promise<null>((resolve) => {
    end = () => resolve(null);
  });
  if (timeoutMs !== undefined) timer = setTimeout(end, timeoutMs);
  void givenUp?.then(end);
  signal?.addEventListener('abort', end);
  if (signal?.aborted === true) end();
  const cancel = (): void => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', end);
  };
  return { ended, cancel };
}

/** Null if the limit comes first. */
export async function within<T>(promise: Promise<T>, limit: TimeLimit): Promise<T | null> {
  const { ended, cancel } = timeLimit(limit);
  try {
    return await Promise.race([promise, ended]);
  } finally {
    cancel();
  }
}
