// What an answer of the world has cost.

/** Null where the world does not tell. */
export interface Usage {
  readonly usd: number | null;
  readonly tokens: number | null;
}
