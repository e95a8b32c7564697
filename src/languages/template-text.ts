// Strings with {{…}} → Text of the IR. What a reference may name is for each language to say; what is no reference at all,
// and how a value must be quoted where it stands in a script, is found here.

import type { QuoteLayer } from '../ir/quote.ts';
import type { Part, Text } from '../ir/text.ts';
import type { Report } from './report.ts';
import { shellContexts } from './shell-context.ts';
import { HOLE } from './shell-heredoc.ts';
import type { Hole } from './template.ts';
import { parseTemplate } from './template.ts';
import type { TomlString } from './toml-tree.ts';
import { placeWithin } from './toml-tree.ts';

/** Texts and references in turn; what is neither is reported. */
export function readTemplate(report: Report, string: TomlString): readonly (string | Hole)[] {
  const { parts, problems } = parseTemplate(string.value);
  for (const { from, to, message, hint } of problems) {
    report.error('invalid-reference', placeWithin(string, from, to), message, hint);
  }
  return parts;
}

/** A path, a name, a value: references go in as they are. */
export function verbatimText(parts: readonly (string | Hole)[]): Text {
  return toText(parts, () => []);
}

/** What a language has to say about the references of a script. */
export interface ScriptReferences {
  /** Told of each that can be put where it stands. */
  readonly placed?: (hole: Hole, layers: readonly QuoteLayer[]) => void;
  /** How else the script can have a value that cannot. */
  readonly cure: (hole: Hole) => string;
}

/** A shell script: each value is quoted so that it arrives as data. `parts`: those of the string. */
export function scriptText(
  report: Report,
  string: TomlString,
  parts: readonly (string | Hole)[],
  { placed, cure }: ScriptReferences,
): Text {
  const nul = string.value.indexOf(HOLE);
  if (nul !== -1) {
    const place = placeWithin(string, nul, nul + 1);
    report.error('nul-byte', place, 'a NUL byte stands in the script', 'No shell can read it; remove it.');
    return '';
  }
  const contexts = shellContexts(parts.map((part) => (typeof part === 'string' ? part : HOLE)).join(''));
  const layers = new Map<Hole, readonly QuoteLayer[]>();
  const reasons = new Set<string>();
  for (const [index, hole] of parts.filter((part) => typeof part !== 'string').entries()) {
    const context = contexts[index];
    if (context?.kind === 'placed') {
      layers.set(hole, context.layers);
      placed?.(hole, context.layers);
    }
    if (context?.kind === 'refused' && !reasons.has(context.reason)) {
      // A script that cannot be followed refuses all its references for one reason: once is enough.
      reasons.add(context.reason);
      const message = `{{${hole.path.join('.')}}} cannot be put here as data: ${context.reason}`;
      report.error('shell-context', placeWithin(string, hole.from, hole.to), message, context.hint ?? cure(hole));
    }
  }
  return toText(parts, (hole) => layers.get(hole) ?? []);
}

function toText(parts: readonly (string | Hole)[], quote: (hole: Hole) => readonly QuoteLayer[]): Text {
  const lowered = parts.map(
    (part): Part => (typeof part === 'string' ? part : { path: part.path, quote: quote(part) }),
  );
  return lowered.every((part) => typeof part === 'string') ? lowered.join('') : { parts: lowered };
}
