// What a simulated agent answers without a script: for each output that is asked for a value of its type, so that what
// follows can go on, and comes to an end. What asks for more (`has_more`, `retry`, `issues_found`) is answered no.

import type { Json } from '../base/json.ts';
import type { Expectation } from '../ir/output.ts';

export interface SimAnswer {
  readonly outputs: Readonly<Record<string, Json>>;
  /** To be there when the outputs are reported, seen from the agent's folder. */
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

/** Maps have the keys that the description shows. A list has one item: what is done for each is tried once. */
function jsonFor(name: string, description: string): Json {
  const shown = /\{([^{}]*)\}/.exec(description)?.[1]?.match(/[A-Za-z_]\w*/g) ?? [];
  const map = (keys: readonly string[]): Json => Object.fromEntries(keys.map((key) => [key, `sim-${key}`]));
  const isList = /\b(lists?|arrays?|tasks|items)\b|\[/i.test(`${name.replaceAll('_', ' ')} ${description}`);
  return isList ? [map(['id', 'name', 'title', 'description', ...shown])] : map(shown);
}

function plain(text: string): string {
  return text.replaceAll(/[^A-Za-z0-9_.-]/g, '_').slice(0, 80);
}
