import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { plainWords } from './turn-launcher.ts';

test.each([
  'claude -p --verbose',
  "claude --allowedTools 'mcp__meow__*' 'Bash(meow *)' --resume x",
  'claude -p \\\n  --mcp-config /tmp/a.json \\\n --x',
  `a'b c'"d e"f '' "" 'it has $HOME'`,
])('splits %j as a shell does', (text) => {
  const script = `words() { for word; do printf '%s\\0' "$word"; done; }; words ${text}`;
  const split = execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0').slice(0, -1);
  expect(plainWords(text)).toEqual(split);
});

test.each([
  'a $HOME',
  'a "$HOME"',
  'a *',
  'a ~',
  'a; b',
  'a > b',
  'a & b',
  'a # b',
  'a\nb',
  "a 'b",
  'a \\ b',
  'a "b\\n"',
  '',
])('leaves %j to the shell', (text) => {
  expect(plainWords(text)).toBeNull();
});
