// Pasted text reaches a program byte for byte, and never escapes its paste.

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { actor, givenTo, TAKEN, onRig } from './terminal-rig.ts';

describe('a prompt', () => {
  test.concurrent.for([
    ['tabs', 'a\tb\n\tc'],
    ['CRLF', 'one\r\ntwo\r\n'],
    ['escape sequences', '\u001b[31mred\u001b[0m \u001b]0;title\u0007 \u001b[200~ \u001b[A \u001bOP \u001b'],
    ['control characters', '\u0001\u0003\u0004\u0008\u000c\u0011\u0013\u0015\u001a\u007f'],
    ['emoji and other scripts', '👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301 \u200b 日本語 العربية'],
    ['formats and commands of tmux', '#{pid} #(id) ; kill-server ; #[fg=red] \\; %1 ~ $HOME `id` "x" \'y\''],
    ['blanks at its ends', '  in the middle  \n\n'],
    ['a megabyte', Array.from({ length: 20_000 }, (_, line) => `line ${line}: ${'äöü€'.repeat(8)}\t#{};`).join('\n')],
    ['a line of a megabyte', 'x'.repeat(1_000_000)],
  ])('with %s arrives unchanged', ([, text]) =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks'));
      expect(await rig.hand(agent, 'odd#1', `work:10\n${text}`)).toEqual(TAKEN);
      expect(givenTo(rig).join() === `work:10\n${text}`).toBe(true);
    }),
  );

  test.concurrent.for(['\u001b[201~', 'x\u009b201~'])('that would end its paste (%j) goes through a file', (end) =>
    onRig(async (rig) => {
      const agent = await rig.started(actor('--hooks'));
      const text = `first\n${end}\rwork:9\r`;
      expect(await rig.hand(agent, 'break out#1', text)).toEqual(TAKEN);
      const [given = ''] = givenTo(rig);
      const [, file = ''] =
        /^Your task is in the file (\/.+\.md): read all of it, and do what it says\.$/.exec(given) ?? [];
      expect(readFileSync(file, 'utf8')).toBe(text);
      expect(givenTo(rig)).toHaveLength(1);
    }),
  );
});
