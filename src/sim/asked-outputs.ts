// Parses the requests in a prompt, as an agent would read them: the inverse of `promptText`.

import type { Expectation } from '../ir/output.ts';

export interface AskedOutputs {
  /** The workflow's text without the instructions about outputs and reports. */
  readonly prompt: string;
  /** A report is requested. */
  readonly reports: boolean;
  readonly expects: readonly Expectation[];
}

export function askedOutputs(text: string): AskedOutputs {
  const asked =
    /(?:^|\n)(?:\n(?:Expected outputs|Outputs to hand on):\n((?: {2}.*\n)+))?\n?Report when .*:\n {2}meow done(?: .*)?\s*$/.exec(
      text,
    );
  if (asked === null) return { prompt: text, reports: false, expects: [] };
  const lines = (asked[1] ?? '').split('\n').filter((line) => line !== '');
  return {
    prompt: text.slice(0, asked.index),
    reports: true,
    expects: lines.flatMap((line) => expectationIn(line) ?? []),
  };
}

/** Whether the prompt asks for a planner's verdict. */
export function asksForStatus(text: string): boolean {
  return /\nAnswer with exactly one JSON object .*\n\n {2}"status" +one of "success"/.test(text);
}

function expectationIn(line: string): Expectation | null {
  const fields = /^ {2}(.+?) \((string|number|boolean|json|file_path), (required|optional)\)(?:: (.*))?$/.exec(line);
  if (fields === null) return null;
  const [, name = '', type, need, description] = fields;
  return { name, type: type as Expectation['type'], required: need === 'required', description: description ?? null };
}
