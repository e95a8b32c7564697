// One result of `meow doctor`.

export interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warning' | 'missing';
  readonly text: string;
  /** How to fix it; null if nothing is needed. */
  readonly cure: string | null;
  /** Required to run anything. */
  readonly needed: boolean;
}

export function ok(name: string, text: string): Check {
  return { name, status: 'ok', text, cure: null, needed: false };
}

export function warning(name: string, text: string, cure: string | null): Check {
  return { name, status: 'warning', text, cure, needed: false };
}

export function missing(name: string, text: string, cure: string | null, needed = false): Check {
  return { name, status: 'missing', text, cure, needed };
}

/** Negative if the first is older; parts that are not numbers are ignored. */
export function compareVersions(one: string, other: string): number {
  const parts = (version: string): readonly number[] => (version.match(/\d+/g) ?? []).map(Number);
  const [a, b] = [parts(one), parts(other)];
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
