// Writing to an agent's pipe: once-writer/1 to 4. Each writer is one engine process, and only the test reads the pipe.

import { execFileSync } from 'node:child_process';
import { appendFileSync, closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { OnceWriter, PIPE } from '../../src/drivers/agent/acp/once-writer.ts';
import { isErrno } from '../../src/sys/errors.ts';

const SENT = { kind: 'sent' };
let folder: string;
let reader: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'meow-writer-'));
  execFileSync('mkfifo', [join(folder, PIPE)]);
  // Opened for reading and writing, so it never reports end of file.
  reader = openSync(join(folder, PIPE), constants.O_RDWR | constants.O_NONBLOCK);
});
afterEach(() => {
  closeSync(reader);
  rmSync(folder, { recursive: true });
});

/** The current contents of the pipe. */
function inPipe(): string {
  const chunks: Buffer[] = [];
  const chunk = Buffer.alloc(65_536);
  for (;;) {
    try {
      const length = readSync(reader, chunk, 0, chunk.length, null);
      chunks.push(Buffer.from(chunk.subarray(0, length)));
    } catch (error) {
      if (isErrno(error, 'EAGAIN')) return Buffer.concat(chunks).toString('utf8');
      throw error;
    }
  }
}

/** Everything that arrives until the writer is done. */
async function readUntil(done: Promise<unknown>): Promise<string> {
  let text = '';
  const isDone = done.then(() => true);
  const soon = (): Promise<false> => new Promise((resolve) => setImmediate(() => resolve(false)));
  do text += inPipe();
  while (!(await Promise.race([isDone, soon()])));
  return text + inPipe();
}

const record = (): readonly unknown[] =>
  readFileSync(join(folder, 'acp-in.sent'), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as unknown);

describe('a line', () => {
  test('is recorded before and after each of its parts', async () => {
    const writer = new OnceWriter(folder);
    expect(await writer.write('a', '{}')).toEqual(SENT);
    expect(inPipe()).toBe('{}\n');
    expect(record()).toEqual([
      ['begun', 'a'],
      ['whole', 'a'],
      ['sent', 'a'],
    ]);
  });

  test('is written once, across restarts', async () => {
    const writer = new OnceWriter(folder);
    await Promise.all([writer.write('a', '1'), writer.write('a', '1'), writer.write('b', '2')]);
    await writer.write('a', '1');
    writer.close();
    const next = new OnceWriter(folder);
    expect(await next.write('b', '2')).toEqual(SENT);
    expect(next.sent()).toEqual(['a', 'b']);
    expect(inPipe()).toBe('1\n2\n');
  });

  test('that does not fit into the pipe is written as it is read, and later lines wait', async () => {
    const writer = new OnceWriter(folder);
    const large = 'x'.repeat(3_000_000);
    const all = Promise.all([writer.write('a', large), writer.write('b', 'y')]);
    expect(await readUntil(all)).toBe(`${large}\ny\n`);
  });

  test('waits until somebody opens the pipe', async () => {
    closeSync(reader);
    const writer = new OnceWriter(folder);
    const written = writer.write('a', 'x');
    reader = openSync(join(folder, PIPE), constants.O_RDWR | constants.O_NONBLOCK);
    writer.update();
    expect(await written).toEqual(SENT);
    expect(inPipe()).toBe('x\n');
  });

  test('without a reader is not sent', async () => {
    const writer = new OnceWriter(folder);
    const written = writer.write('a', 'x'.repeat(1_000_000));
    writer.close();
    expect(await written).toMatchObject({ kind: 'not-sent' });
    expect(writer.hasSent('a')).toBe(false);
  });

  test('that is cancelled before it starts is never written', async () => {
    const writer = new OnceWriter(folder);
    const first = writer.write('a', 'x'.repeat(100_000));
    expect(await writer.write('b', 'y', Promise.resolve())).toMatchObject({ kind: 'not-sent' });
    expect(await readUntil(first)).not.toContain('y');
    expect(new OnceWriter(folder).wasWithdrawn('b')).toBe(true);
  });

  test('that is cancelled half-written is invalidated', async () => {
    const writer = new OnceWriter(folder);
    const large = JSON.stringify('x'.repeat(100_000));
    expect(await writer.write('a', large, Promise.resolve())).toMatchObject({ kind: 'not-sent' });
    expect(await readUntil(writer.write('b', 'y'))).toMatch(/^"x+!\ny\n$/);
  });
});

describe('after a crash', () => {
  test('in the middle of a line, the line is invalidated and written again', async () => {
    const writer = new OnceWriter(folder);
    const large = JSON.stringify('x'.repeat(100_000));
    void writer.write('a', large);
    writer.close();
    const next = new OnceWriter(folder);
    expect(next.hasSent('a')).toBe(false);
    const [half = '', ...whole] = (await readUntil(next.write('a', large))).split('\n');
    expect(half).toMatch(/^"x+!$/);
    expect(whole).toEqual([large, '']);
  });

  test('before the end of a line, only the end is written', async () => {
    appendFileSync(join(folder, 'acp-in.sent'), '["begun","a"]\n["whole","a"]\n');
    appendFileSync(join(folder, PIPE), '{}');
    const writer = new OnceWriter(folder);
    expect(writer.hasSent('a')).toBe(true);
    writer.update();
    expect(await writer.write('b', '[]')).toEqual(SENT);
    expect(inPipe()).toBe('{}\n[]\n');
    expect(record().slice(2)).toEqual([
      ['sent', 'a'],
      ['begun', 'b'],
      ['whole', 'b'],
      ['sent', 'b'],
    ]);
  });

  test('a torn record is ignored', () => {
    appendFileSync(join(folder, 'acp-in.sent'), '["begun","a"]\n["sent","a"]\n["sent","b');
    expect(new OnceWriter(folder).sent()).toEqual(['a']);
  });
});
