// How scripts are run: with bash, or with sh if bash is missing.

import { quote } from '../../ir/quote.ts';
import type { RaymondFile } from './source.ts';

const BASH = '"$(command -v bash || echo sh)"';

/** Runs in its own folder, so that it finds files next to it. With bash, unless it has a `#!` and is executable. */
export function fileCommand({ name, text, path, isExecutable }: RaymondFile): string {
  const runsItself = isExecutable && (!/\.sh$/i.test(name) || text === null || text.startsWith('#!'));
  return runsItself ? `exec ${word(path)}` : `exec ${BASH} ${word(path)}`;
}

export function textCommand(script: string): string {
  return `exec ${BASH} -c ${word(script)}`;
}

/** A shell cannot run text with a NUL byte. */
function word(text: string): string {
  const quoted = quote(text, [{ kind: 'quoted' }]);
  return quoted.ok ? quoted.value : "''";
}
