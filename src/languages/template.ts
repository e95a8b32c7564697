// `{{path.to.value}}` in a text. Spaces inside the braces do not matter; `{{{{` is a literal pair of braces. Anything
// else between two pairs of braces is reported as an error. Each language checks its references; this file lowers texts
// with them to Text of the IR, and finds their quoting in scripts.

import type { Place } from '../base/source.ts';
import type { QuoteLayer } from '../ir/quote.ts';
import type { Part, Text } from '../ir/text.ts';
import type { Report } from './report.ts';
import { shellContexts } from './shell-context.ts';
import { HOLE } from './shell-heredoc.ts';
import { placeWithin, type TomlString } from './toml-tree.ts';

/** Its offsets include the braces. */
export interface Hole extends Place {
  readonly path: readonly string[];
}

export interface Template {
  /** Texts and placeholders, alternating. */
  readonly parts: readonly (string | Hole)[];
  readonly problems: readonly TemplateProblem[];
}

interface TemplateProblem extends Place {
  readonly message: string;
  readonly hint: string;
}

/** Hint for texts with braces of their own: formats of docker and Go, expressions of GitHub. */
export const LITERAL_BRACES = 'For literal braces, write {{{{.';

/** Literal braces; one before a reference, as in a reversed `{a,{{b}}}`; a reference, perhaps without its end. */
const BRACES = /\{\{\{\{|\{(?=\{\{)|\{\{(?:([^{}\n]*)\}\})?/g;

/** `braces`: the braces that are not plain text, with the inside of a reference as its group. */
export function parseTemplate(text: string, braces = BRACES): Template {
  const parts: (string | Hole)[] = [];
  const problems: TemplateProblem[] = [];
  let plain = '';
  let at = 0;
  for (const { 0: matched, 1: inside, index } of text.matchAll(braces)) {
    plain += text.slice(at, index);
    at = index + matched.length;
    const path = inside?.trim();
    if (matched === '{{{{') plain += '{{';
    else if (matched === '{') plain += '{';
    else if (path === undefined) {
      const message = 'this {{ has no }} on its line';
      problems.push({ from: index, to: at, message, hint: `Write {{name}}. ${LITERAL_BRACES}` });
    } else if (/^[\w-]+(?:\.[\w-]+)*$/.test(path)) {
      if (plain !== '') parts.push(plain);
      plain = '';
      parts.push({ path: path.split('.'), from: index, to: at });
    } else problems.push({ from: index, to: at, ...notAPath(path) });
  }
  plain += text.slice(at);
  if (plain !== '') parts.push(plain);
  return { parts, problems };
}

/** The placeholder that is the whole text; null if there is more, or none. */
export function wholeReference(text: string): Hole | null {
  const [only, ...more] = parseTemplate(text).parts;
  return only === undefined || typeof only === 'string' || more.length > 0 ? null : only;
}

function notAPath(path: string): { readonly message: string; readonly hint: string } {
  if (path === '')
    return { message: 'nothing is named between these braces', hint: `Write {{name}}. ${LITERAL_BRACES}` };
  const hint = `A reference is a name, or names joined by dots: {{task}}, {{build.outputs.path}}. ${LITERAL_BRACES}`;
  return { message: `"${path}" is not a reference`, hint };
}

/** Texts and references, alternating; anything else is reported. */
export function readTemplate(report: Report, string: TomlString): readonly (string | Hole)[] {
  const { parts, problems } = parseTemplate(string.value);
  for (const { from, to, message, hint } of problems) {
    report.error('invalid-reference', placeWithin(string, from, to), message, hint);
  }
  return parts;
}

/** The text with the same filler for each placeholder. */
export function fillPlaceholders(parts: Template['parts'], filler: string): string {
  return parts.map((part) => (typeof part === 'string' ? part : filler)).join('');
}

/** A path, a name, a value: references are inserted unchanged. */
export function verbatimText(parts: readonly (string | Hole)[]): Text {
  return toText(parts, () => []);
}

/** A language's checks of the references in a script. */
export interface ScriptReferences {
  /** Called for each reference that can be inserted. */
  readonly placed?: (hole: Hole, layers: readonly QuoteLayer[]) => void;
  /** An alternative for a value that cannot be inserted. */
  readonly cure: (hole: Hole) => string;
}

/** A shell script: each value is quoted so that it arrives as data. `parts`: the parts of the string. */
export function scriptText(
  report: Report,
  string: TomlString,
  parts: readonly (string | Hole)[],
  { placed, cure }: ScriptReferences,
): Text {
  const nul = string.value.indexOf(HOLE);
  if (nul !== -1) {
    const place = placeWithin(string, nul, nul + 1);
    report.error('nul-byte', place, 'the script contains a NUL byte', 'Shells cannot read it; remove it.');
    return '';
  }
  const contexts = shellContexts(fillPlaceholders(parts, HOLE));
  const layers = new Map<Hole, readonly QuoteLayer[]>();
  const reasons = new Set<string>();
  for (const [index, hole] of parts.filter((part) => typeof part !== 'string').entries()) {
    const context = contexts[index];
    if (context?.kind === 'placed') {
      layers.set(hole, context.layers);
      placed?.(hole, context.layers);
    }
    if (context?.kind === 'refused' && !reasons.has(context.reason)) {
      // An unreadable script refuses all references for one reason, which is reported once.
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
