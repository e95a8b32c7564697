import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

import { checkNode, compareVersions, tryCommand } from './doctor.ts';

const PLENTY_MS = 20_000;

test('a command that ends tells how', async () => {
  expect(await tryCommand('echo one; echo two >&2; exit 3', process.env, PLENTY_MS)).toMatchObject({
    kind: 'ended',
    status: 3,
  });
  expect(await tryCommand('echo "$WORD"', { ...process.env, WORD: 'here' }, PLENTY_MS)).toEqual({
    kind: 'ended',
    status: 0,
    output: 'here\n',
  });
});

test('one that reads finds nothing there, and one that is killed has not succeeded', async () => {
  expect(await tryCommand('cat', process.env, PLENTY_MS)).toEqual({ kind: 'ended', status: 0, output: '' });
  expect(await tryCommand('kill -9 $$', process.env, PLENTY_MS)).toMatchObject({ kind: 'ended', status: 1 });
});

test('one that hangs is ended, with all that it has started', async () => {
  expect(await tryCommand('sleep 600 & sleep 600', process.env, 50)).toEqual({ kind: 'late' });
});

test('of endless output the beginning is kept', async () => {
  const trial = await tryCommand('yes | head -c 1000000', process.env, PLENTY_MS);
  expect(trial.kind === 'ended' && trial.output.length < 200_000).toBe(true);
});

test.each([
  ['3.2', '3.2', 0],
  ['3.3a', '3.2', 1],
  ['3.10', '3.9', 1],
  ['20.9.0', '20.19', -1],
  ['next-3.4', '3.4', 0],
  ['1.2', '1.2.1', -1],
])('%s against %s', (one, other, sign) => {
  expect(Math.sign(compareVersions(one, other))).toBe(sign);
});

test('a Node that is too old is missing, and nothing runs without', () => {
  expect(checkNode('18.20.0')).toMatchObject({ status: 'missing', needed: true });
  expect(checkNode('20.19.0')).toMatchObject({ status: 'ok' });
});

test('the Node that is asked for is the one that the package asks for', () => {
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } };
  const least = engines.node.replace('>=', '');
  expect(checkNode(`${least}.0`).status).toBe('ok');
  expect(checkNode(`${least.replace(/\d+$/, (minor) => String(Number(minor) - 1))}.9`).status).toBe('missing');
});
