// Claims about every run of a workflow: `[[claim]]` tables of a test file. `meow prove` proves them, and `meow test`
// checks them in each test. A step is a pattern with `*`, which matches any characters, dots included.

export type Claim = Readonly<
  /** The step never starts; or not before another step is done, or before a gate is approved. */
  | { kind: 'never'; step: string; unless: string | null; unlessGate: string | null }
  /** In each run that ends so, some matching step started. */
  | { kind: 'always'; step: string; when: 'any' | 'done' | 'failed' }
  | { kind: 'at-most'; limits: ClaimedLimits }
  /** Never two matching steps at once. */
  | { kind: 'alone'; step: string }
  /** No hang, and no loop without a bound. */
  | { kind: 'ends' }
  /** In a run that ends as done, every started agent is stopped. */
  | { kind: 'cleaned' }
>;

/** Absent ones are unlimited. */
export interface ClaimedLimits {
  readonly turns?: number;
  readonly commands?: number;
  readonly agentsAtOnce?: number;
  readonly usd?: number;
  /** How often steps start, by pattern. */
  readonly visits: Readonly<Record<string, number>>;
}

/** The claim in one line, for people. */
export function claimText(claim: Claim): string {
  switch (claim.kind) {
    case 'never':
      if (claim.unless !== null) return `never ${claim.step} unless ${claim.unless} is done`;
      return claim.unlessGate === null
        ? `never ${claim.step}`
        : `never ${claim.step} unless gate ${claim.unlessGate} is approved`;
    case 'always':
      return `always ${claim.step}${claim.when === 'any' ? '' : ` when ${claim.when}`}`;
    case 'at-most':
      return `at most ${limitTexts(claim.limits).join(', ')}`;
    case 'alone':
      return `alone ${claim.step}`;
    case 'ends':
    case 'cleaned':
      return claim.kind;
  }
}

function limitTexts({ turns, commands, agentsAtOnce, usd, visits }: ClaimedLimits): readonly string[] {
  const limits: readonly (readonly [string, number | undefined])[] = [
    ['turns', turns],
    ['commands', commands],
    ['agents at once', agentsAtOnce],
    ['dollars', usd],
    ...Object.entries(visits).map(([step, limit]) => [`visits of ${step}`, limit] as const),
  ];
  return limits.flatMap(([what, limit]) => (limit === undefined ? [] : [limitText(what, limit)]));
}

/** `what`: in the plural, such as `turns` or `visits of fix`. */
export function limitText(what: string, count: number): string {
  return `${String(count)} ${count === 1 ? what.replace(/^(\w+)s\b/, '$1') : what}`;
}
