import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { AgentMessage } from '../ir/prompt-text.ts';
import { hasBegun, limitOf, makeMailbox, readMail, sendMail, tellLimit } from './mail.ts';

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

test('a message that was sent is not sent again (mailbox/2)', () => {
  sendMail(folder, 'a', message('a'));
  sendMail(folder, 'a', message('a'));
  expect(readMail(folder)).toHaveLength(1);
  expect(readMail(folder)[0]?.take()).toBe(true);
  expect(sendMail(folder, 'a', message('a')).state()).toBe('taken');
  expect(readMail(folder)).toEqual([]);
});

test('what was taken cannot be taken back, and the other way round (mailbox/1)', () => {
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

test('what was taken is begun with later, and is not sent again then either (mailbox/4)', () => {
  const sent = sendMail(folder, 'a#1', message('a#1'));
  const [letter] = readMail(folder);
  letter?.take();
  expect(hasBegun(folder, 'a#1')).toBe(false);
  letter?.begin();
  expect(hasBegun(folder, 'a#1')).toBe(true);
  expect(hasBegun(folder, '1')).toBe(false);
  expect(sent.state()).toBe('taken');
  expect(sent.withdraw()).toBe(false);
  expect(sendMail(folder, 'a#1', message('a#1')).state()).toBe('taken');
});

test('a limit is told for the message that it is about', () => {
  expect(limitOf(folder, 'a#1')).toBeNull();
  tellLimit(folder, { id: 'a#1', text: 'ends in 5s', until: 7 });
  expect(limitOf(folder, 'a#1')).toEqual({ id: 'a#1', text: 'ends in 5s', until: 7 });
  expect(limitOf(folder, 'a#2')).toBeNull();
});
