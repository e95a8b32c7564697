// How scripts are run. Where there is no bash, sh will have to do.

import { quote } from '../../ir/quote.ts';
import type { RaymondFile } from './source.ts';

const BASH = '"$(command -v bash || echo sh)"';

/** Where it lies, so that it finds what lies beside it. Without a `#!`, or the right to be executed, by bash. */
export function fileCommand({ name, text, path, isExecutable }: RaymondFile): string {
  const runsItself = isExecutable && (!/\.sh$/i.test(name) || text === null || text.startsWith('#!'));
  return runsItself ? `exec ${word(path)}` : `exec ${BASH} ${word(path)}`;
}

export function textCommand(script: string): string {
  return `exec ${BASH} -c ${word(script)}`;
}

/** What has a NUL byte in it is nothing that a shell can run. */
function word(text: string): string {
  const quoted = quote(text, [{ kind: 'quoted' }]);
  return quoted.ok ? quoted.value : "''";
}
