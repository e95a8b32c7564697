// What is known while a shell script is read: how far, which holes were found, and what was decided about them.

import type { QuoteLayer } from '../ir/quote.ts';
import type { Finding } from './shell-evaluation.ts';
import { ARRAY_VALUE, DYNAMIC } from './shell-evaluation.ts';
import { HOLE } from './shell-heredoc.ts';

export type HoleContext =
  | { readonly kind: 'placed'; readonly layers: readonly QuoteLayer[] }
  | ({ readonly kind: 'refused' } & Refusal);

export interface Refusal {
  readonly reason: string;
  /** How else to do it; null where the environment is the way. */
  readonly hint: string | null;
}

export interface Scan {
  readonly text: string;
  at: number;
  /** What the shell does to this text before it reads it as a script: backticks, here-documents. */
  readonly around: readonly QuoteLayer[];
  readonly found: HoleContext[];
  /** In how many scripts within scripts each hole stands, and what is being read now: `$(…)`, backticks, here-documents. */
  readonly scripts: number[];
  readonly script: number;
  /** Holes that are declared as the value of a name, which must be no array. */
  readonly declared: Map<number, string>;
  /** Arrays of the whole script; null among them stands for any name. */
  readonly arrays: Set<string | null>;
  readonly depth: number;
  /** Why the script cannot be followed. */
  lost: Refusal | null;
  /** Reads commands to the end of the text, or behind the `)` that closes a `$(`. */
  readonly readCommands: (s: Scan, close: ')' | null) => void;
}

export const DEPTH_MAX = 50;

// ── Holes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** At a hole: its value goes in with this layer, and goes on behind it. */
export function place(s: Scan, layer: QuoteLayer): void {
  s.found.push({ kind: 'placed', layers: [layer, ...s.around] });
  s.scripts.push(s.script);
  s.at += 1;
}

/** At a hole: refuses it, and goes on behind it. */
export function refuse(s: Scan, refusal: Refusal): void {
  s.found.push({ kind: 'refused', ...refusal });
  s.scripts.push(s.script);
  s.at += 1;
}

export function giveUp(s: Scan, reason: string, hint: string | null = null): void {
  s.lost ??= { reason, hint };
  s.at = s.text.length;
}

/** Behind the beginning of something whose rest may stand on the next line: a joint that shells see through. */
export function giveUpAtJoint(s: Scan): void {
  if (s.text.startsWith('\\\n', s.at)) giveUp(s, 'a sign of the shell is cut in two by the end of a line');
}

/** The holes found since then that belong to this script, and not to a `$(…)` within it. */
export function holesSince(s: Scan, from: number): readonly number[] {
  const holes: number[] = [];
  for (let hole = from; hole < s.found.length; hole++) if (s.scripts[hole] === s.script) holes.push(hole);
  return holes;
}

/** What an expansion is in the text of a word. */
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

/** An integer is harmless wherever it stands. */
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

/** At the end of the script. */
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

/** A text of its own within the script. */
export function inner(s: Scan, text: string, around: readonly QuoteLayer[]): Scan {
  return { ...s, text, at: 0, around, script: s.script + 1, depth: s.depth + 1 };
}

/** Reads on in the same text, one level down; `script`: whether as a script of its own. */
export function nested(s: Scan, read: (nested: Scan) => void, script: 'same' | 'own' = 'same'): void {
  if (s.depth >= DEPTH_MAX) return giveUp(s, 'it stands too deep in the script');
  const nested: Scan = { ...s, depth: s.depth + 1, script: script === 'own' ? s.script + 1 : s.script };
  read(nested);
  s.at = nested.at;
  s.lost = nested.lost;
}
