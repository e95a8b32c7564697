import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { AgentMessage } from '../ir/prompt-text.ts';
import { makeMailbox, readMail, sendMail } from './mail.ts';

let folder: string;
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'meow-mail-')), 'mail');
  makeMailbox(folder);
});
afterEach(() => rmSync(join(folder, '..'), { recursive: true, force: true }));

const message = (id: string): AgentMessage => ({ kind: 'key', id, key: 'Up' });

test('messages are read in the order in which they were sent', () => {
  for (const id of ['b', 'a', 'c']) sendMail(folder, id, message(id));
  expect(readMail(folder).map(({ message: { id } }) => id)).toEqual(['b', 'a', 'c']);
});

test('a message that was sent is not sent again (M2)', () => {
  sendMail(folder, 'a', message('a'));
  sendMail(folder, 'a', message('a'));
  expect(readMail(folder)).toHaveLength(1);
  expect(readMail(folder)[0]?.take()).toBe(true);
  expect(sendMail(folder, 'a', message('a')).state()).toBe('taken');
  expect(readMail(folder)).toEqual([]);
});

test('what was taken cannot be taken back, and the other way round (M1)', () => {
  const first = sendMail(folder, 'a', message('a'));
  expect(readMail(folder)[0]?.take()).toBe(true);
  expect(first.withdraw()).toBe(false);
  expect(first.state()).toBe('taken');
  const second = sendMail(folder, 'b', message('b'));
  const [letter] = readMail(folder);
  expect(second.withdraw()).toBe(true);
  expect(letter?.take()).toBe(false);
  expect(second.state()).toBe('withdrawn');
});

test('an id that ends as another does is another', () => {
  sendMail(folder, 'x-a#1', message('x-a#1'));
  sendMail(folder, 'a#1', message('a#1'));
  expect(readdirSync(folder)).toEqual(['000001-x-a#1.json', '000002-a#1.json']);
});
