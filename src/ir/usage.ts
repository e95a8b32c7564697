// Cost of an effect.

/** Null if not reported. */
export interface Usage {
  readonly usd: number | null;
  readonly tokens: number | null;
}
