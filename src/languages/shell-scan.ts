// State of reading a shell script: the position, the placeholders found, and the decisions about them.

import type { QuoteLayer } from '../ir/quote.ts';
import type { Finding } from './shell-evaluation.ts';
import { ARRAY_VALUE, DYNAMIC } from './shell-evaluation.ts';
import { HOLE } from './shell-heredoc.ts';

export type HoleContext =
  | { readonly kind: 'placed'; readonly layers: readonly QuoteLayer[] }
  | ({ readonly kind: 'refused' } & Refusal);

export interface Refusal {
  readonly reason: string;
  /** An alternative; null if the environment is the alternative. */
  readonly hint: string | null;
}

export interface Scan {
  readonly text: string;
  at: number;
  /** Processing by the shell before it reads this text as a script: backticks, here-documents. */
  readonly around: readonly QuoteLayer[];
  readonly found: HoleContext[];
  /** Nesting depth of scripts for each placeholder, and for the current text: `$(…)`, backticks, here-documents. */
  readonly scripts: number[];
  readonly script: number;
  /** Placeholders declared as the value of a name, which must not be an array. */
  readonly declared: Map<number, string>;
  /** Arrays of the whole script; null stands for any name. */
  readonly arrays: Set<string | null>;
  readonly depth: number;
  /** Why the script cannot be read. */
  lost: Refusal | null;
  /** Reads commands to the end of the text, or after the `)` that closes a `$(`. */
  readonly readCommands: (s: Scan, close: ')' | null) => void;
}

export const DEPTH_MAX = 50;

// ── Holes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** At a placeholder: accepts it with this layer, and continues after it. */
export function place(s: Scan, layer: QuoteLayer): void {
  s.found.push({ kind: 'placed', layers: [layer, ...s.around] });
  s.scripts.push(s.script);
  s.at += 1;
}

/** At a placeholder: refuses it, and continues after it. */
export function refuse(s: Scan, refusal: Refusal): void {
  s.found.push({ kind: 'refused', ...refusal });
  s.scripts.push(s.script);
  s.at += 1;
}

export function giveUp(s: Scan, reason: string, hint: string | null = null): void {
  s.lost ??= { reason, hint };
  s.at = s.text.length;
}

/** After the start of a construct that a line continuation may split. */
export function giveUpAtJoint(s: Scan): void {
  if (s.text.startsWith('\\\n', s.at)) giveUp(s, 'a sign of the shell is cut in two by the end of a line');
}

/** Placeholders found since then in this script, without those in a nested `$(…)`. */
export function holesSince(s: Scan, from: number): readonly number[] {
  const holes: number[] = [];
  for (let hole = from; hole < s.found.length; hole++) if (s.scripts[hole] === s.script) holes.push(hole);
  return holes;
}

/** An expansion as text of a word. */
export function expansion(s: Scan, from: number): string {
  return DYNAMIC + HOLE.repeat(holesSince(s, from).length);
}

export function apply(s: Scan, findings: readonly Finding[]): void {
  for (const finding of findings) {
    switch (finding.kind) {
      case 'refused':
        refuseFound(s, finding.hole, finding);
        break;
      case 'integer':
      case 'quoted':
        tighten(s, finding.hole, finding.kind);
        break;
      case 'declared':
        s.declared.set(finding.hole, finding.name);
        break;
      case 'array':
        s.arrays.add(finding.name);
        break;
      case 'lost':
        giveUp(s, finding.reason, finding.hint);
        break;
    }
  }
}

/** An integer is harmless everywhere. */
export function refuseFound(s: Scan, hole: number, { reason, hint }: Refusal): void {
  const context = s.found[hole];
  if (context?.kind === 'placed' && context.layers[0]?.kind !== 'integer') {
    s.found[hole] = { kind: 'refused', reason, hint };
  }
}

function tighten(s: Scan, hole: number, kind: 'integer' | 'quoted'): void {
  const context = s.found[hole];
  if (context?.kind !== 'placed') return;
  const [layer, ...around] = context.layers;
  const isBare = layer?.kind === 'bare' || layer?.kind === 'quoted';
  if (layer === undefined || layer.kind === 'integer' || (kind === 'quoted' && !isBare)) return;
  const layers: QuoteLayer[] = [
    ...(kind === 'integer' ? [{ kind }] : []),
    ...(isBare ? [{ kind: 'quoted' } as const] : []),
  ];
  s.found[hole] = { kind: 'placed', layers: [...layers, ...around] };
}

/** Called at the end of the script. */
export function resultsOf({ found, lost, text, arrays, declared }: Scan): readonly HoleContext[] {
  if (lost !== null) {
    return text
      .split(HOLE)
      .slice(1)
      .map(() => ({ kind: 'refused', ...lost }));
  }
  return found.map((context, hole) => {
    const name = declared.get(hole);
    const isOfArray = name !== undefined && (arrays.has(name) || arrays.has(null));
    return context.kind === 'placed' && isOfArray ? { kind: 'refused', ...ARRAY_VALUE } : context;
  });
}

// ── Texts within texts ──────────────────────────────────────────────────────────────────────────────────────────────

/** A separate text inside the script. */
export function inner(s: Scan, text: string, around: readonly QuoteLayer[]): Scan {
  return { ...s, text, at: 0, around, script: s.script + 1, depth: s.depth + 1 };
}

/** Continues in the same text, one level deeper; `script`: whether as a script of its own. */
export function nested(s: Scan, read: (nested: Scan) => void, script: 'same' | 'own' = 'same'): void {
  if (s.depth >= DEPTH_MAX) return giveUp(s, 'it stands too deep in the script');
  const nested: Scan = { ...s, depth: s.depth + 1, script: script === 'own' ? s.script + 1 : s.script };
  read(nested);
  s.at = nested.at;
  s.lost = nested.lost;
}
