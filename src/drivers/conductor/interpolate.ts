// `${run_id}`, `${run_dir}`, `${worktree}` and `${step_id}` in the texts of validators. One pass: values are not
// expanded again.

import { own } from '../../base/json.ts';
import { nearest } from '../../base/nearest.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';

export interface Places {
  readonly run_id: string;
  readonly run_dir: string;
  readonly worktree: string;
  readonly step_id: string;
}

/** `written`: how a value is written into the text. The error is a sentence. */
export function interpolate(
  text: string,
  places: Places,
  written: (value: string) => string = (value) => value,
): Result<string, string> {
  const values: Readonly<Record<string, string>> = { ...places };
  const pieces: string[] = [];
  let at = 0;
  for (;;) {
    const from = text.indexOf('${', at);
    if (from === -1) return ok(pieces.join('') + text.slice(at));
    const to = text.indexOf('}', from);
    if (to === -1) return err(`\${ is not closed in ${JSON.stringify(text)}`);
    const name = text.slice(from + 2, to);
    const value = own(values, name);
    if (value === undefined) return err(unknown(name, Object.keys(values)));
    pieces.push(text.slice(at, from), written(value));
    at = to + 1;
  }
}

function unknown(name: string, names: readonly string[]): string {
  const meant = nearest(name, names);
  const cure = meant === null ? `there are ${names.join(', ')}` : `did you mean \${${meant}}?`;
  return `\${${name}} is not a known placeholder; ${cure}`;
}
