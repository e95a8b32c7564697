// How long something is waited for.

export interface Patience {
  readonly timeoutMs?: number;
  readonly givenUp?: Promise<unknown>;
}

/** Resolves when it ends; `cancel` leaves no timer behind. */
export function endOf({ timeoutMs, givenUp }: Patience): {
  readonly ended: Promise<null>;
  readonly cancel: () => void;
} {
  let timer: NodeJS.Timeout | undefined;
  const ended = new Promise<null>((resolve) => {
    if (timeoutMs !== undefined) timer = setTimeout(() => resolve(null), timeoutMs);
    void givenUp?.then(() => resolve(null));
  });
  return { ended, cancel: () => clearTimeout(timer) };
}

/** Null where our patience ends first. */
export async function within<T>(promise: Promise<T>, patience: Patience): Promise<T | null> {
  const { ended, cancel } = endOf(patience);
  const first = await Promise.race([promise, ended]);
  cancel();
  return first;
}
