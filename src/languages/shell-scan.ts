// State of reading a shell script: the position, the placeholders found, and the decisions about them.

import type { QuoteLayer } from '../ir/quote.ts';
import { ARRAY_VALUE, DYNAMIC, type Finding } from './shell-evaluation.ts';
import { HOLE } from './shell-heredoc.ts';

export type HoleContext =
  | { readonly kind: 'placed'; readonly layers: readonly QuoteLayer[] }
  | ({ readonly kind: 'refused' } & Refusal);

export interface Refusal {
  readonly reason: string;
  /** An alternative; null if the environment is the alternative. */
  readonly hint: string | null;
}

/** Reads commands to the end of the text, or after the `)` that closes a `$(`. */
type ReadCommands = (s: Scan, close: ')' | null) => void;

const DEPTH_MAX = 50;

export class Scan {
  text: string;
  at = 0;
  /** Processing by the shell before it reads this text as a script: backticks, here-documents. */
  around: readonly QuoteLayer[] = [];
  readonly found: HoleContext[] = [];
  /** Nesting depth of scripts: `$(…)`, backticks, here-documents. */
  script = 0;
  /** The same for each placeholder. */
  readonly #scripts: number[] = [];
  /** Placeholders declared as the value of a name, which must not be an array. */
  readonly #declared = new Map<number, string>();
  /** Arrays of the whole script; null stands for any name. */
  readonly arrays = new Set<string | null>();
  #depth = 0;
  /** Why the script cannot be read. */
  lost: Refusal | null = null;
  readonly readCommands: ReadCommands;

  constructor(text: string, readCommands: ReadCommands) {
    this.text = text;
    this.readCommands = readCommands;
  }

  get next(): string | undefined {
    return this.text[this.at];
  }

  /** Reads what the sticky pattern matches here. */
  match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.at;
    const matched = pattern.exec(this.text);
    this.at += matched?.[0].length ?? 0;
    return matched;
  }

  giveUp(reason: string, hint: string | null = null): void {
    this.lost ??= { reason, hint };
    this.at = this.text.length;
  }

  /** After the start of a construct that a line continuation may split. */
  giveUpAtJoint(): void {
    if (this.text.startsWith('\\\n', this.at)) this.giveUp('a sign of the shell is cut in two by the end of a line');
  }

  // ── Placeholders ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** At a placeholder: accepts it with this layer, and continues after it. */
  place(layer: QuoteLayer): void {
    this.#add({ kind: 'placed', layers: [layer, ...this.around] });
  }

  /** At a placeholder: refuses it, and continues after it. */
  refuse(reason: string, hint: string | null = null): void {
    this.#add({ kind: 'refused', reason, hint });
  }

  #add(context: HoleContext): void {
    this.found.push(context);
    this.#scripts.push(this.script);
    this.at += 1;
  }

  /** Placeholders found since then in this script, without those in a nested `$(…)`. */
  holesSince(from: number): readonly number[] {
    const holes: number[] = [];
    for (let hole = from; hole < this.found.length; hole++) if (this.#scripts[hole] === this.script) holes.push(hole);
    return holes;
  }

  /** Reads an expansion. Returns it as text of a word. */
  expansion(read: (s: Scan) => void): string {
    const first = this.found.length;
    read(this);
    return DYNAMIC + HOLE.repeat(this.holesSince(first).length);
  }

  apply(findings: readonly Finding[]): void {
    for (const finding of findings) {
      switch (finding.kind) {
        case 'refused':
          this.refuseFound(finding.hole, finding);
          break;
        case 'integer':
        case 'quoted':
          this.#tighten(finding.hole, finding.kind);
          break;
        case 'declared':
          this.#declared.set(finding.hole, finding.name);
          break;
        case 'array':
          this.arrays.add(finding.name);
          break;
        case 'lost':
          this.giveUp(finding.reason, finding.hint);
          break;
      }
    }
  }

  /** An integer is harmless everywhere. */
  refuseFound(hole: number, { reason, hint }: Refusal): void {
    const context = this.found[hole];
    if (context?.kind === 'placed' && context.layers[0]?.kind !== 'integer') {
      this.found[hole] = { kind: 'refused', reason, hint };
    }
  }

  #tighten(hole: number, kind: 'integer' | 'quoted'): void {
    const context = this.found[hole];
    if (context?.kind !== 'placed') return;
    const [layer, ...around] = context.layers;
    const isBare = layer?.kind === 'bare' || layer?.kind === 'quoted';
    if (layer === undefined || layer.kind === 'integer' || (kind === 'quoted' && !isBare)) return;
    const integer: readonly QuoteLayer[] = kind === 'integer' ? [{ kind }] : [];
    const quoted: readonly QuoteLayer[] = isBare ? [{ kind: 'quoted' }] : [];
    this.found[hole] = { kind: 'placed', layers: [...integer, ...quoted, ...around] };
  }

  /** Called at the end of the script. */
  results(): readonly HoleContext[] {
    const { lost } = this;
    if (lost !== null) {
      const holes = this.text.split(HOLE).slice(1);
      return holes.map(() => ({ kind: 'refused', ...lost }));
    }
    return this.found.map((context, hole) => {
      const name = this.#declared.get(hole);
      const isOfArray = name !== undefined && (this.arrays.has(name) || this.arrays.has(null));
      return context.kind === 'placed' && isOfArray ? { kind: 'refused', ...ARRAY_VALUE } : context;
    });
  }

  // ── Texts within texts ────────────────────────────────────────────────────────────────────────────────────────────

  /** Whether the nesting ends here. */
  isTooDeep(): boolean {
    const isTooDeep = this.#depth >= DEPTH_MAX;
    if (isTooDeep) this.giveUp('it is nested too deeply in the script');
    return isTooDeep;
  }

  /** Continues in the same text, one level deeper; `script`: whether as a script of its own. */
  nested(read: () => void, script: 'same' | 'own' = 'same'): void {
    if (!this.isTooDeep()) this.#deeper(read, script === 'own' ? 1 : 0);
  }

  /** Reads a separate text inside the script, as a script of its own. */
  within(text: string, around: readonly QuoteLayer[], read: () => void): void {
    const outer = { text: this.text, at: this.at, around: this.around };
    Object.assign(this, { text, at: 0, around } satisfies typeof outer);
    this.#deeper(read, 1);
    Object.assign(this, outer);
    if (this.lost !== null) this.at = this.text.length;
  }

  #deeper(read: () => void, scripts: 0 | 1): void {
    this.#depth += 1;
    this.script += scripts;
    read();
    this.#depth -= 1;
    this.script -= scripts;
  }
}
