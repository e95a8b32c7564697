// Strings with {{…}} → Text of the IR: references checked, and in scripts each with the quoting of its place.

import type { QuoteLayer } from '../../ir/quote.ts';
import type { Part, Text } from '../../ir/text.ts';
import { listed } from '../report.ts';
import type { TomlString } from '../toml-tree.ts';
import { placeWithin } from '../toml-tree.ts';
import type { Scope } from './scope.ts';
import { checkReference } from './scope.ts';
import { shellContexts } from './shell-context.ts';
import { HOLE } from './shell-heredoc.ts';
import type { Hole } from './template.ts';
import { parseTemplate } from './template.ts';

/** A path, a name, a value: references go in as they are. */
export function lowerText(scope: Scope, string: TomlString): Text {
  return toText(readParts(scope, string), () => []);
}

/** A variable's default: only what is built in has a value where it is filled. */
export function lowerDefault(scope: Scope, string: TomlString): Text {
  const { report, builtins } = scope;
  const variables = new Set<string>();
  for (const part of parseTemplate(string.value).parts) {
    if (typeof part === 'string') continue;
    const [name = ''] = part.path;
    if (builtins.includes(name)) continue;
    variables.add(name);
    const place = placeWithin(string, part.from, part.to);
    const message = `a default cannot refer to "${part.path.join('.')}"`;
    report.error('unknown-variable', place, message, `A default may use ${listed(builtins)}.`);
  }
  return lowerText({ ...scope, variables }, string);
}

/** As `lowerText`, without the first characters. */
export function lowerTail(scope: Scope, string: TomlString, from: number): Text {
  const [first, ...rest] = readParts(scope, string);
  const tail = typeof first === 'string' ? [first.slice(from), ...rest].filter((part) => part !== '') : [];
  return toText(tail, () => []);
}

/** A shell script: each value is quoted so that it arrives as data. */
export function lowerScript(scope: Scope, string: TomlString): Text {
  const { report } = scope;
  const nul = string.value.indexOf(HOLE);
  if (nul !== -1) {
    const place = placeWithin(string, nul, nul + 1);
    report.error('nul-byte', place, 'a NUL byte stands in the script', 'No shell can read it; remove it.');
    return '';
  }
  const parts = readParts(scope, string);
  const contexts = shellContexts(parts.map((part) => (typeof part === 'string' ? part : HOLE)).join(''));
  const layers = new Map<Hole, readonly QuoteLayer[]>();
  const reasons = new Set<string>();
  for (const [index, hole] of parts.filter((part) => typeof part !== 'string').entries()) {
    const context = contexts[index];
    if (context?.kind === 'placed') layers.set(hole, context.layers);
    else if (context !== undefined && !reasons.has(context.reason)) {
      // A script that cannot be followed refuses all its references for one reason: once is enough.
      reasons.add(context.reason);
      const message = `{{${hole.path.join('.')}}} cannot be put here as data: ${context.reason}`;
      const hint = context.hint ?? environmentHint(scope, hole);
      report.error('shell-context', placeWithin(string, hole.from, hole.to), message, hint);
    }
  }
  return toText(parts, (hole) => layers.get(hole) ?? []);
}

function environmentHint({ variables }: Scope, { path }: Hole): string {
  const environmentName = (name: string): string => name.replaceAll(/[^A-Za-z0-9_]/g, '_').toUpperCase();
  const [only] = path;
  if (only !== undefined && path.length === 1 && variables.has(only)) {
    return `The script finds it in its environment: "$MEOW_VAR_${environmentName(only)}".`;
  }
  const name = environmentName(`value_${path.at(-1) ?? ''}`);
  return `Pass it by the environment: env = { ${name} = "{{${path.join('.')}}}" }, and write "$${name}" in the script.`;
}

function readParts(scope: Scope, string: TomlString): readonly (string | Hole)[] {
  const { parts, problems } = parseTemplate(string.value);
  for (const { from, to, message, hint } of problems) {
    scope.report.error('invalid-reference', placeWithin(string, from, to), message, hint);
  }
  for (const part of parts) {
    if (typeof part !== 'string') checkReference(scope, part.path, placeWithin(string, part.from, part.to));
  }
  return parts;
}

function toText(parts: readonly (string | Hole)[], quote: (hole: Hole) => readonly QuoteLayer[]): Text {
  const lowered = parts.map(
    (part): Part => (typeof part === 'string' ? part : { path: part.path, quote: quote(part) }),
  );
  return lowered.every((part) => typeof part === 'string') ? lowered.join('') : { parts: lowered };
}
