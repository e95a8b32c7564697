// Answers of a simulated agent without a script: a value of the right type for each requested output, so that the
// workflow continues and ends. Outputs that ask for more work (`has_more`, `retry`, `issues_found`) are false.

import type { Json } from '../base/json.ts';
import type { Expectation } from '../ir/output.ts';

export interface SimAnswer {
  readonly outputs: Readonly<Record<string, Json>>;
  /** Must exist when the outputs are reported; relative to the agent's folder. */
  readonly files: readonly { readonly path: string; readonly text: string }[];
}

export function answerTo(expects: readonly Expectation[], agent: string): SimAnswer {
  const files: { path: string; text: string }[] = [];
  const outputs = expects.map((expected): [string, Json] => {
    if (expected.type !== 'file_path') return [expected.name, valueFor(expected)];
    const path = `sim-${plain(agent)}-${plain(expected.name)}.txt`;
    files.push({ path, text: `${expected.description ?? expected.name}, as the simulated agent ${agent} wrote it\n` });
    return [expected.name, path];
  });
  return { outputs: Object.fromEntries(outputs), files };
}

function valueFor({ name, type, description }: Expectation): Json {
  switch (type) {
    case 'string':
    case 'file_path':
      return `sim-${name}`;
    case 'number':
      return 1;
    case 'boolean':
      return !asksForMore(name);
    case 'json':
      return jsonFor(name, description ?? '');
  }
}

const MORE =
  /^(more|continue|again|retry|rerun|repeat|left|remaining|unfinished|issues?|problems?|errors?|bugs?|fail(s|ed|ure|ures|ing)?|broken|blocked|stuck|conflicts?|missing|needs?|changes)$/;

function asksForMore(name: string): boolean {
  const words = name.split(/[^A-Za-z0-9]+|(?<=[a-z0-9])(?=[A-Z])/).map((word) => word.toLowerCase());
  const denied = words.some((word) => word === 'no' || word === 'not' || word === 'without');
  return !denied && words.some((word) => MORE.test(word));
}

/** Maps have the keys shown in the description. Lists have one item, so that loops run once. */
function jsonFor(name: string, description: string): Json {
  const shown = /\{([^{}]*)\}/.exec(description)?.[1]?.match(/[A-Za-z_]\w*/g) ?? [];
  const map = (keys: readonly string[]): Json => Object.fromEntries(keys.map((key) => [key, `sim-${key}`]));
  const isList = /\b(lists?|arrays?|tasks|items)\b|\[/i.test(`${name.replaceAll('_', ' ')} ${description}`);
  return isList ? [map(['id', 'name', 'title', 'description', ...shown])] : map(shown);
}

function plain(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9_.-]/g, '_').slice(0, 80);
}
