// The keys of `meow top`, as its last line and its help name them.

import { type Palette, row, type Segment, widthOf } from '../view/row.ts';

interface NamedKey {
  readonly key: string;
  readonly ascii?: string;
  /** On the last line, where the first ones that fit are shown. */
  readonly word: string;
  readonly help: string;
}

const KEYS: readonly NamedKey[] = [
  { key: '?', word: 'keys', help: 'show this help; any key closes it' },
  { key: 'q', word: 'quit', help: 'quit, from everywhere; Ctrl-C too' },
  { key: '⏎', ascii: 'Enter', word: 'open', help: 'open the selected run as a tree of its steps' },
  {
    key: 'a',
    word: 'approve',
    help: 'approve or allow what waits in the run, or answer a question; then y, or the text and Enter',
  },
  { key: 'x', word: 'reject', help: 'reject or deny it; then y. Any other key cancels' },
  { key: 't', word: 'terminal', help: "attach to the terminal of the run's agent, that of one that asks first" },
  {
    key: 'l',
    word: 'logs',
    help: 'page the output of the step that runs, failed or ended last ($PAGER, otherwise less)',
  },
  { key: 'w', word: 'why', help: 'say why that step has its status' },
  { key: '/', word: 'filter', help: 'show only runs whose project, id or workflow contains a text' },
  { key: 'o', word: 'page', help: 'open the page of the run in the browser, while meow ui or meow serve is running' },
];

const OTHERS: readonly (readonly [string, string])[] = [
  ['j k', 'move down and up; arrows too, Page Down and Page Up by ten'],
  ['g G', 'move to the first and the last run; Home and End too'],
  ['Esc', 'go back: from a run to all runs, or without the filter'],
  ['^Z', 'suspend; fg returns'],
  ['^L', 'draw everything again'],
];

export const HELP_LINES: readonly string[] = [
  'Keys of meow top',
  '',
  ...[...OTHERS.slice(0, 2), ...KEYS.map(({ key, help }) => [key, help] as const), ...OTHERS.slice(2)].map(
    ([key, help]) => `  ${key.padEnd(5)} ${help}`,
  ),
];

/** Only whole entries. */
export function keyLine(width: number, { bold, dim }: Palette, ascii: boolean): string {
  const segments: Segment[] = [];
  let used = 1;
  for (const { key, ascii: plain, word } of KEYS) {
    const shown = ascii ? (plain ?? key) : key;
    const taken = widthOf(shown) + 1 + widthOf(word) + 2;
    if (used + taken - 2 > width) break;
    used += taken;
    segments.push({ text: ` ${shown}`, style: bold }, { text: ` ${word} `, style: dim });
  }
  return row(segments, width);
}
