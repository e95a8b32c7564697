// Failures that only a file store can have: a disk that tears, fills up, fails or changes bytes, a killed engine,
// manual changes. Rules of files.ts, journal-lines.ts, journal-tail.ts and file-journal.ts.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text as readText } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { crc32 } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { JournalEvent, Store } from '../../src/engine/ports.ts';
import type { JournalRecord } from '../../src/kernel/decision.ts';
import { DiskFailure } from '../../src/stores/errors.ts';
import type { AppendFile } from '../../src/stores/file-journal.ts';
import { fileStore } from '../../src/stores/files.ts';
import { stateFile } from '../../src/sys/files.ts';
import { aProgram, aRecord } from './store-samples.ts';
import { begin, refusalOf } from './store.ts';

const HOLDER = fileURLToPath(new URL('./store-holder.ts', import.meta.url));

let project: string;
let folder: string;
let store: Store;
let journalPath: string;
let programPath: string;

beforeEach(async () => {
  project = await mkdtemp(join(tmpdir(), 'meow-store-'));
  folder = join(project, '.meow', 'workflows');
  store = fileStore({ folder });
  journalPath = join(folder, 'wf-1', 'journal.jsonl');
  programPath = join(folder, 'wf-1', 'program.json');
});
afterEach(() => rm(project, { recursive: true }));

describe('on disk', () => {
  test('each record is a line of JSON with a CRC, and the first one names the format', async () => {
    await begin(store, 'wf-1', 3);
    const lines = (await readFile(journalPath, 'utf8')).trimEnd().split('\n');
    expect(lines).toHaveLength(3);
    for (const [index, line] of lines.entries()) {
      const { crc, ...rest } = JSON.parse(line) as Record<string, unknown>;
      expect(crc).toBe(crc32(JSON.stringify(rest)).toString(16).padStart(8, '0'));
      expect(Object.keys(rest)).toEqual([
        ...(index === 0 ? ['format'] : []),
        'seq',
        'at',
        'durable',
        'input',
        'decisions',
      ]);
      expect(rest['at']).toBe(new Date(aRecord(index + 1).at).toISOString());
    }
    expect(JSON.parse(await readFile(programPath, 'utf8'))).toMatchObject({ program: aProgram() });
  });

  test.each(['000', '777'])('folders and files are private with umask %s (files/5)', async (mask) => {
    const before = process.umask(mask);
    try {
      const journal = await store.create('wf-1', aProgram());
      await journal.append([aRecord(1)]);
      await writeState('wf-1', 'id: wf-1\n');
      const modes = await Promise.all(
        ['.', 'wf-1', 'wf-1/journal.jsonl', 'wf-1/program.json', 'wf-1.yaml', 'wf-1.yaml.lock'].map(
          async (path) => [path, ((await stat(join(folder, path))).mode & 0o777).toString(8)] as const,
        ),
      );
      expect(Object.fromEntries(modes)).toEqual({
        '.': '700',
        'wf-1': '700',
        'wf-1/journal.jsonl': '600',
        'wf-1/program.json': '600',
        'wf-1.yaml': '600',
        'wf-1.yaml.lock': '600',
      });
      await journal.close();
    } finally {
      process.umask(before);
    }
  });

  test('the lock file is gone when the run is closed, and after a refusal', async () => {
    await begin(store, 'wf-1', 1);
    expect(await readdir(folder)).toEqual(['wf-1']);
    await writeFile(programPath, '{}');
    await refusalOf(store.open('wf-1'));
    expect(await readdir(folder)).toEqual(['wf-1']);
  });
});

describe('a truncated write', () => {
  test('is dropped at any byte, and the run continues', async () => {
    await begin(store, 'wf-1', 2);
    const third: JournalRecord = { seq: 3, at: 3, input: { kind: 'deadline-passed', timer: 'a' }, decisions: [] };
    const before = await store.open('wf-1');
    await before.append([third]);
    await before.close();
    const whole = await readFile(journalPath);
    const lastStart = whole.subarray(0, -1).lastIndexOf('\n') + 1;
    for (let length = lastStart; length < whole.length; length++) {
      await writeFile(journalPath, whole.subarray(0, length));
      expect((await store.read('wf-1')).records).toEqual([aRecord(1), aRecord(2)]);
      expect((await stat(journalPath)).size).toBe(length);

      const journal = await store.open('wf-1');
      expect(journal.records).toEqual([aRecord(1), aRecord(2)]);
      expect((await stat(journalPath)).size).toBe(lastStart);
      await journal.append([third]);
      await journal.close();
      expect((await readFile(journalPath)).equals(whole)).toBe(true);
    }
  });

  test('is dropped if the last line is not what was written', async () => {
    await begin(store, 'wf-1', 3);
    const whole = await readFile(journalPath);
    const lastStart = whole.subarray(0, -1).lastIndexOf('\n') + 1;
    for (let offset = lastStart; offset < whole.length - 1; offset += 7) {
      await writeFile(journalPath, flipped(whole, offset));
      expect((await store.read('wf-1')).records).toEqual([aRecord(1), aRecord(2)]);
    }
  });

  test('is dropped if the file grew and its bytes never arrived', async () => {
    await begin(store, 'wf-1', 2);
    const { size } = await stat(journalPath);
    await truncate(journalPath, size + 10_000);
    const journal = await store.open('wf-1');
    expect(journal.records).toHaveLength(2);
    expect((await stat(journalPath)).size).toBe(size);
    await journal.close();
  });

  test('is dropped if the pages of one write arrived out of order (journal/5)', async () => {
    const journal = await store.create('wf-1', aProgram());
    await journal.append([aRecord(1)]);
    await journal.append([aRecord(2), aRecord(3), aRecord(4)]);
    await journal.close();
    const whole = await readFile(journalPath);
    const second = whole.indexOf('\n') + 1;
    for (const [from, kept] of [
      [second, 1],
      [whole.indexOf('"seq":3') - 1, 2],
    ] as const) {
      const bytes = Buffer.from(whole);
      bytes.fill(0, from, from + 40);
      await writeFile(journalPath, bytes);
      expect((await store.read('wf-1')).records).toHaveLength(kept);
    }
    const again = await store.open('wf-1');
    expect(again.records).toEqual([aRecord(1), aRecord(2)]);
    await again.append([aRecord(3, 'anew')]);
    await again.close();
    expect((await store.read('wf-1')).records).toEqual([aRecord(1), aRecord(2), aRecord(3, 'anew')]);
  });

  test('is dropped even if it quotes the end of a record', async () => {
    const journal = await store.create('wf-1', aProgram());
    const outputs = { report: { a: 1, crc: '00000000' } };
    await journal.append([
      aRecord(1),
      { ...aRecord(2), decisions: [{ kind: 'step-done', step: 's', outputs, kept: [], session: null }] },
    ]);
    await journal.close();
    const content = await readFile(journalPath, 'utf8');
    const quoted = content.indexOf('"crc":"00000000"}');
    expect(quoted).toBeGreaterThan(0);
    for (let length = quoted; length < content.length; length++) {
      await writeFile(journalPath, content.slice(0, length));
      expect((await store.read('wf-1')).records).toEqual([aRecord(1)]);
    }
  });

  test('of the first record leaves a run that never began', async () => {
    await begin(store, 'wf-1', 1);
    const { size } = await stat(journalPath);
    for (const length of [size - 1, 20, 1, 0]) {
      await truncate(journalPath, length);
      for (const ask of ['open', 'read'] as const) {
        expect((await refusalOf(store[ask]('wf-1'))).message).toContain('never began');
      }
      expect((await stat(journalPath)).size).toBe(length);
    }
    await unlink(journalPath);
    expect((await refusalOf(store.open('wf-1'))).message).toContain('never began');
    await unlink(programPath);
    expect((await refusalOf(store.open('wf-1'))).message).toBe('there is no run wf-1');
    await begin(store, 'wf-1', 1);
  });
});

describe('a run that begins with files (files/7)', () => {
  const fill: Parameters<typeof store.create>[2] = async (files) =>
    files.replace('steps/a.1.outputs/text', Buffer.from('text'));

  test('is not a run until they are there, and its id is free again if it never begins', async () => {
    const killed = store.create('wf-1', aProgram(), async (files) => {
      await fill(files);
      expect(await store.list()).toEqual([]);
      expect((await refusalOf(store.read('wf-1'))).message).toBe('there is no run wf-1');
      throw new Error('killed');
    });
    await expect(killed).rejects.toThrow('killed');
    await expect(stat(join(folder, 'wf-1'))).rejects.toThrow('ENOENT');
    // As a kill leaves it: before the program, and before the first record.
    for (const name of ['program.json', null]) {
      const journal = await store.create('wf-1', aProgram(), fill);
      await journal.append([aRecord(1)]);
      await journal.close();
      await truncate(journalPath, 0);
      if (name !== null) for (const path of [journalPath, programPath]) await unlink(path);
      else expect((await refusalOf(store.open('wf-1'))).message).toContain('never began');
    }
    const journal = await store.create('wf-1', aProgram(), fill);
    await journal.append([aRecord(1)]);
    await journal.close();
    expect(Buffer.from((await store.files('wf-1').read('steps/a.1.outputs/text')) ?? []).toString()).toBe('text');
    await writeState('wf-1', 'id: wf-1\n');
    await truncate(journalPath, 0);
    expect((await refusalOf(store.open('wf-1'))).message).toContain('is empty or missing');
    expect((await refusalOf(store.create('wf-1', aProgram()))).message).toContain('wf-1');
  });
});

describe('damage (files/4)', () => {
  test('an emptied journal is distinguished from a new run, for every reader', async () => {
    const journal = await store.create('wf-1', aProgram());
    // Of an earlier run that somebody deleted.
    await writeState('wf-1', 'id: wf-1\n');
    expect((await store.read('wf-1')).records).toEqual([]);
    await journal.append([aRecord(1)]);
    await journal.close();
    for (const empty of [() => truncate(journalPath, 0), () => unlink(journalPath)]) {
      await empty();
      for (const ask of ['open', 'read'] as const) {
        const refusal = await refusalOf(store[ask]('wf-1'));
        expect(refusal.message).toContain('the journal of run wf-1 is empty or missing, although the run had begun');
        expect(refusal.hint).toContain(`restore it: ${journalPath}`);
      }
    }
  });

  test('a hole in data that was durable before the next write is not a truncated write', async () => {
    const journal = await store.create('wf-1', aProgram());
    for (const seq of [1, 2, 3]) await journal.append([aRecord(seq)]);
    await journal.close();
    const bytes = await readFile(journalPath);
    const second = bytes.indexOf('\n') + 1;
    bytes.fill(0, second, second + 40);
    await writeFile(journalPath, bytes);
    expect((await refusalOf(store.open('wf-1'))).message).toContain('record 2 cannot be trusted');
  });

  test('of any byte before the last record is found, and nothing is changed', async () => {
    await begin(store, 'wf-1', 5);
    const whole = await readFile(journalPath);
    const lastStart = whole.subarray(0, -1).lastIndexOf('\n') + 1;
    for (let offset = 0; offset < lastStart; offset++) {
      const bytes = flipped(whole, offset);
      await writeFile(journalPath, bytes);
      const refusal = await refusalOf(store.read('wf-1'));
      const before = countLines(whole.subarray(0, offset));
      // Another bit in the format number is another format.
      if (refusal.message.includes('version of meow')) expect(offset).toBeLessThan(20);
      else expect(refusal.message).toContain(`record ${before + 1} cannot be trusted`);
      if (offset % 50 > 0) continue;
      await refusalOf(store.open('wf-1'));
      expect((await readFile(journalPath)).equals(bytes)).toBe(true);
    }
  });

  test('is reported with the intact part and how to inspect it', async () => {
    await begin(store, 'wf-1', 5);
    const whole = await readFile(journalPath);
    await writeFile(journalPath, flipped(whole, whole.indexOf('says 4')));
    const refusal = await refusalOf(store.open('wf-1'));
    expect(refusal.message).toBe(
      'the journal of run wf-1 is damaged: record 4 cannot be trusted (its checksum is wrong), ' +
        `the 3 before it are intact (${journalPath})`,
    );
    expect(refusal.hint).toBe(
      `nothing was changed or started. What is intact: head -n 3 ${journalPath} | jq . · The damaged line: sed -n 4p ${journalPath}`,
    );
  });

  test('of the last line break is not a truncated write', async () => {
    await begin(store, 'wf-1', 3);
    const whole = await readFile(journalPath);
    await writeFile(journalPath, flipped(whole, whole.length - 1));
    expect((await refusalOf(store.open('wf-1'))).message).toContain('record 3 cannot be trusted');
    await writeFile(journalPath, flipped(whole, whole.subarray(0, -1).lastIndexOf('\n')));
    expect((await refusalOf(store.open('wf-1'))).message).toContain('record 2 cannot be trusted');
  });

  test.each([
    ['a record is missing', [0, 1, 3, 4], 'record 3 cannot be trusted (it is numbered 4)'],
    ['a record occurs twice', [0, 1, 1, 2], 'record 3 cannot be trusted (it is numbered 2)'],
    ['records are swapped', [0, 2, 1, 3], 'record 2 cannot be trusted (it is numbered 3)'],
    ['the first is missing', [1, 2], 'record 1 cannot be trusted'],
  ] as const)('%s', async (_title, order, message) => {
    await begin(store, 'wf-1', 5);
    const lines = (await readFile(journalPath, 'utf8')).split('\n');
    await writeFile(journalPath, order.map((index) => `${lines[index]}\n`).join(''));
    expect((await refusalOf(store.open('wf-1'))).message).toContain(message);
  });

  test('two writers are distinguished from one', async () => {
    await begin(store, 'wf-1', 2);
    const line = (await readFile(journalPath, 'utf8')).split('\n')[1];
    await writeFile(journalPath, `${line}\n`, { flag: 'a' });
    expect((await refusalOf(store.read('wf-1'))).message).toContain('it is numbered 2');
  });

  test.each([
    [3, 'a later version of meow (journal format 3)', 'update meow, then try again'],
    [
      1,
      'an earlier version of meow (journal format 1)',
      'use the version that recorded it, or start the workflow again',
    ],
  ])('a journal of format %i is left to a version that supports it', async (format, message, hint) => {
    await begin(store, 'wf-1', 1);
    await writeFile(journalPath, `{"format":${format},"and":"whatever it says"}\n`);
    const refusal = await refusalOf(store.open('wf-1'));
    expect(refusal.message).toContain(message);
    expect(refusal.hint).toBe(hint);
  });

  test.each([
    ['is missing', () => unlink(programPath)],
    ['is cut off or no longer a program', () => truncate(programPath, 100)],
    ['is cut off or no longer a program', () => writeFile(programPath, '[]')],
    [
      'was changed after the run began',
      async () => {
        const content = await readFile(programPath, 'utf8');
        await writeFile(programPath, content.replace('"drainMs":0', '"drainMs":1'));
      },
    ],
    [
      'was written by another version of meow',
      async () => {
        const content = await readFile(programPath, 'utf8');
        await writeFile(programPath, content.replace('"format":2', '"format":3'));
      },
    ],
  ])('a program that %s is refused', async (message, damage) => {
    await begin(store, 'wf-1', 1);
    await damage();
    for (const ask of ['open', 'read'] as const) {
      const refusal = await refusalOf(store[ask]('wf-1'));
      expect(refusal.message).toBe(`the program of run wf-1 cannot be trusted: ${programPath} ${message}`);
    }
  });
});

describe('a failing disk', () => {
  test('that is full holds the run: durable records stay, and nothing more is accepted (append/3)', async () => {
    const disk = new Disk();
    const failing = fileStore({ folder, wrapFile: disk.wrapFile });
    const journal = await failing.create('wf-1', aProgram());
    await journal.append([aRecord(1)]);
    const { size } = await stat(journalPath);

    disk.bytesLeft = 300;
    const lost = journal.append([aRecord(2), aRecord(3)]);
    const behind = lost.catch(() => journal.append([aRecord(4)]));
    const refusal = await refusalOf(lost);
    expect(refusal).toBeInstanceOf(DiskFailure);
    expect(refusal.message).toBe(
      `run wf-1 is held: its journal cannot be written, the disk is full (ENOSPC: ${journalPath})`,
    );
    expect(refusal.hint).toBe('nothing more was started; free some space, then: meow resume wf-1');
    expect(await refusalOf(behind)).toBe(refusal);

    disk.bytesLeft = Infinity;
    const calls = disk.calls.length;
    expect(await refusalOf(journal.append([aRecord(2)]))).toBe(refusal);
    await journal.close();
    expect(disk.calls.slice(calls).filter((call) => call !== 'truncate' && call !== 'close')).toEqual([]);
    expect((await stat(journalPath)).size).toBe(size);

    const again = await store.open('wf-1');
    expect(again.records).toEqual([aRecord(1)]);
    await again.append([aRecord(2)]);
    await again.close();
  });

  test('a failed datasync is not retried, and its records are not read back (append/3)', async () => {
    const disk = new Disk();
    const journal = await fileStore({ folder, wrapFile: disk.wrapFile }).create('wf-1', aProgram());
    await journal.append([aRecord(1)]);
    disk.syncError = 'EIO';
    const appends = [journal.append([aRecord(2)]), journal.append([aRecord(3)])];
    for (const append of appends) expect((await refusalOf(append)).message).toContain('the disk reports an error (EIO');
    disk.syncError = null;
    expect((await refusalOf(journal.append([aRecord(4)]))).message).toContain('EIO');
    await journal.close();
    expect(disk.calls).toEqual(['write', 'datasync', 'write', 'datasync', 'truncate', 'close']);
    expect((await store.read('wf-1')).records).toEqual([aRecord(1)]);
  });

  test('appends behind a failing one fail with it', async () => {
    const disk = new Disk();
    const journal = await fileStore({ folder, wrapFile: disk.wrapFile }).create('wf-1', aProgram());
    await journal.append([aRecord(1)]);
    const open = disk.holdSync();
    const first = journal.append([aRecord(2)]);
    await disk.syncReached;
    const behind = [journal.append([aRecord(3)]), journal.append([aRecord(4)])];
    disk.syncError = 'EIO';
    open();
    for (const append of [first, ...behind]) expect(await refusalOf(append)).toBeInstanceOf(DiskFailure);
    expect(disk.calls.filter((call) => call === 'write')).toHaveLength(2);
    await journal.close();
  });

  test('before the first record there is no run to hold: creating it fails, and nothing is left (files/2)', async () => {
    const disk = new Disk();
    disk.bytesLeft = 10;
    disk.truncateError = 'EIO';
    const journal = await fileStore({ folder, wrapFile: disk.wrapFile }).create('wf-1', aProgram());
    const refusal = await refusalOf(journal.append([aRecord(1)]));
    expect(refusal).not.toBeInstanceOf(DiskFailure);
    expect(refusal.message).toBe(`cannot create the run wf-1: the disk is full (ENOSPC: ${journalPath})`);
    expect(refusal.hint).toBe('free some space, then try again');
    await journal.close();
    expect(await readdir(project)).toEqual([]);
  });

  test('if truncating fails as well, the next open finds complete records', async () => {
    const disk = new Disk();
    const journal = await fileStore({ folder, wrapFile: disk.wrapFile }).create('wf-1', aProgram());
    await journal.append([aRecord(1)]);
    disk.bytesLeft = 450;
    disk.truncateError = 'EIO';
    await refusalOf(journal.append([aRecord(2), aRecord(3)]));
    await journal.close();
    const again = await store.open('wf-1');
    expect(again.records).toEqual([aRecord(1), aRecord(2)]);
    await again.close();
  });

  test('an error that is not the disk’s is passed on, and also invalidates the journal', async () => {
    const disk = new Disk();
    const journal = await fileStore({ folder, wrapFile: disk.wrapFile }).create('wf-1', aProgram());
    disk.takesNothing = true;
    await expect(journal.append([aRecord(1)])).rejects.toThrow('wrote nothing');
    disk.takesNothing = false;
    await expect(journal.append([aRecord(1)])).rejects.toThrow('wrote nothing');
    await journal.close();
  });
});

describe('group commit', () => {
  test('waiting appends share one write and one datasync (append/1), durable before they resolve (append/2)', async () => {
    const disk = new Disk();
    const journal = await fileStore({ folder, wrapFile: disk.wrapFile }).create('wf-1', aProgram());
    const open = disk.holdSync();
    const resolved: number[] = [];
    const first = journal.append([aRecord(1)]).then(() => resolved.push(1));
    await disk.syncReached;
    const rest = Array.from({ length: 50 }, (_, index) =>
      journal.append([aRecord(index + 2)]).then(() => resolved.push(index + 2)),
    );
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(resolved).toEqual([]);
    expect(disk.calls).toEqual(['write', 'datasync']);
    open();
    await Promise.all([first, ...rest]);
    expect(disk.calls).toEqual(['write', 'datasync', 'write', 'datasync']);
    expect(resolved).toEqual(Array.from({ length: 51 }, (_, index) => index + 1));
    await journal.close();
    expect((await store.read('wf-1')).records).toHaveLength(51);
  });

  test('a disk that accepts a few bytes at a time gets all of them', async () => {
    const disk = new Disk();
    disk.bytesAtOnce = 17;
    const journal = await fileStore({ folder, wrapFile: disk.wrapFile }).create('wf-1', aProgram());
    await journal.append([aRecord(1, 'ünï'), aRecord(2)]);
    await journal.close();
    expect((await store.read('wf-1')).records).toEqual([aRecord(1, 'ünï'), aRecord(2)]);
  });
});

describe('another engine', () => {
  test('is refused with the pid of the holder', async () => {
    const journal = await store.create('wf-1', aProgram());
    await journal.append([aRecord(1)]);
    const refusal = await refusalOf(fileStore({ folder }).open('wf-1'));
    expect(refusal.message).toMatch(
      new RegExp(`^run wf-1 is locked by another engine \\(pid ${process.pid}, since 20`),
    );
    expect(await store.holder('wf-1')).toMatchObject({ pid: process.pid });
    await journal.close();
    expect(await store.holder('wf-1')).toBeNull();
  });

  test('is refused even if the lock file was deleted by hand', async () => {
    const journal = await store.create('wf-1', aProgram());
    await journal.append([aRecord(1)]);
    await unlink(join(folder, 'wf-1.yaml.lock'));
    expect((await refusalOf(store.open('wf-1'))).message).toBe('run wf-1 is locked by another engine');
    await journal.close();
    await (await store.open('wf-1')).close();
  });

  test('that was killed loses its lock at once, even if a child is alive; no acknowledged record is lost (E4, files/3)', async () => {
    const pidFile = join(project, 'child.pid');
    const holder = spawn(process.execPath, ['--import', 'tsx', HOLDER, folder, 'wf-1', pidFile], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let acknowledged = -1;
    for await (const line of createInterface({ input: holder.stdout })) {
      acknowledged = Number(line);
      if (acknowledged === 0) {
        const refusal = await refusalOf(store.create('wf-1', aProgram()));
        expect(refusal.message).toContain(`locked by another engine (pid ${holder.pid},`);
        expect(await store.holder('wf-1')).toMatchObject({ pid: holder.pid });
      }
      if (acknowledged >= 300 && !holder.killed) holder.kill('SIGKILL');
    }
    if (holder.exitCode === null && holder.signalCode === null) await once(holder, 'exit');
    expect(acknowledged).toBeGreaterThanOrEqual(300);
    const child = Number(await readFile(pidFile, 'utf8'));
    try {
      expect(process.kill(child, 0)).toBe(true);
      expect(await store.holder('wf-1')).toBeNull();
      const journal = await store.open('wf-1');
      const count = journal.records.length;
      expect(count).toBeGreaterThanOrEqual(acknowledged);
      await journal.append([aRecord(count + 1)]);
      await journal.close();
      expect(await readdir(folder)).toEqual(['wf-1']);
    } finally {
      process.kill(child);
    }
  });
});

describe('a run that cannot be created leaves nothing behind (files/2)', () => {
  test('if .meow is a file', async () => {
    await writeFile(join(project, '.meow'), '');
    const refusal = await refusalOf(store.create('wf-1', aProgram()));
    expect(refusal.message).toContain('a file is in the place of a folder (ENOTDIR');
    expect(refusal.hint).toContain('.meow must be a folder');
    expect((await refusalOf(store.list())).message).toContain('cannot list the runs');
    expect(await readdir(project)).toEqual(['.meow']);
  });

  test('if .meow/workflows is a file', async () => {
    await mkdir(join(project, '.meow'));
    await writeFile(folder, '');
    expect((await refusalOf(store.create('wf-1', aProgram()))).message).toContain('something else is in its place');
    expect(await readFile(folder, 'utf8')).toBe('');
  });

  test('if .meow is a dangling link', async () => {
    await symlink(join(project, 'nowhere'), join(project, '.meow'));
    expect((await refusalOf(store.create('wf-1', aProgram()))).hint).toContain('link');
    expect(await readdir(project)).toEqual(['.meow']);
  });

  test('if the project is read-only', async () => {
    await chmod(project, 0o555);
    const refusal = await asNobody(() => refusalOf(store.create('wf-1', aProgram())));
    expect(refusal.message).toBe(`cannot create the run wf-1: permission denied (EACCES: ${join(project, '.meow')})`);
    expect(refusal.hint).toContain('writable');
    expect(await readdir(project)).toEqual([]);
    await chmod(project, 0o700);
  });

  test('if it fails after the first folders were created', async () => {
    // Room for the folder of runs, none for its contents.
    const deep = join(project, ...Array.from({ length: 15 }, () => 'd'.repeat(250)), 'e'.repeat(260 - project.length));
    const runs = join(deep, 'f'.repeat(4_080 - deep.length));
    const refusal = await refusalOf(fileStore({ folder: runs }).create('wf-123456789', aProgram()));
    expect(refusal.message).toContain('the path is too long');
    expect(await readdir(project)).toEqual([]);
  });

  test('if not one byte can be written', async () => {
    // Like a full disk: with this process limit, files can be created but stay empty.
    const limited = 'trap "" XFSZ; ulimit -f 0; exec "$@"';
    const holder = spawn(
      'sh',
      ['-c', limited, 'sh', process.execPath, '--import', 'tsx', HOLDER, folder, 'wf-1', join(project, 'child.pid')],
      { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, TSX_DISABLE_CACHE: '1' } },
    );
    const stderr = await readText(holder.stderr);
    expect(stderr).toContain('cannot create the run wf-1: the file would become larger than allowed');
    expect(await readdir(project)).toEqual([]);
  });

  test('if the id belongs to a folder that is not a run', async () => {
    const workflow = join(folder, 'review');
    await mkdir(workflow, { recursive: true });
    await writeFile(join(workflow, 'START.md'), 'Review.');
    expect((await refusalOf(store.create('review', aProgram()))).message).toContain('review already exists');
    expect((await refusalOf(store.open('review'))).message).toBe('there is no run review');
    expect(await readdir(workflow)).toEqual(['START.md']);
    expect(await readdir(folder)).toEqual(['review']);
  });
});

describe('listing runs', () => {
  test('shows the newest first, and only runs', async () => {
    expect(await store.list()).toEqual([]);
    for (const id of ['a', 'b', 'c']) {
      await begin(store, id, 1);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const journal = await store.open('b');
    await journal.append([aRecord(2)]);
    await writeState('b', 'id: b\n');
    await mkdir(join(folder, 'review'));
    await writeFile(join(folder, 'deploy.meow.toml'), '');
    const entries = await store.list();
    expect(entries.map(({ id }) => id)).toEqual(['b', 'c', 'a']);
    expect(Math.abs((entries[0]?.changedAt ?? 0) - Date.now())).toBeLessThan(60_000);
    await journal.close();
  });

  test('continues if one is not accessible, and refuses that one with advice (files/6)', async () => {
    await begin(store, 'shut', 1);
    await begin(store, 'wf-1', 1);
    await begin(store, 'mute', 1);
    await writeState('wf-1', 'id: wf-1\n');
    for (const path of [project, join(project, '.meow'), folder, join(folder, 'wf-1'), join(folder, 'mute')]) {
      await chmod(path, 0o755);
    }
    for (const path of [journalPath, programPath]) await chmod(path, 0o644);
    await chmod(join(folder, 'mute', 'journal.jsonl'), 0);
    await chmod(join(folder, 'shut'), 0);
    await asNobody(async () => {
      const entries = await store.list();
      expect(entries.map(({ id }) => id)).toEqual(['mute', 'wf-1', 'shut']);
      expect(entries[2]?.changedAt).toBeNull();
      expect(entries[1]).toMatchObject({ last: aRecord(1), source: aProgram().source });
      expect(entries[0]).toMatchObject({ last: null, source: null, startedAt: null });
      for (const id of ['shut', 'mute']) {
        const refusal = await refusalOf(store.read(id));
        const path = join(folder, id, 'journal.jsonl');
        expect(refusal.message).toBe(`cannot read the run ${id}: permission denied (EACCES: ${path})`);
        expect(refusal.hint).toBe(
          `see who owns it: ls -la ${folder} ${join(folder, id)} · ask them, or change the owner or mode (chown, chmod)`,
        );
        const [event] = await followed(id, 1, 1);
        expect(event).toMatchObject({ kind: 'lost', why: 'denied' });
        if (event?.kind === 'lost') expect(event.refusal.message).toBe(refusal.message);
      }
      expect((await refusalOf(store.open('shut'))).message).toContain('cannot open the run shut: permission denied');
      expect((await refusalOf(store.programText('shut'))).message).toContain('permission denied');
    });
    await chmod(join(folder, 'shut'), 0o700);
  });

  test('returns the last record, whatever surrounds it', async () => {
    const journal = await store.create('wf-1', aProgram());
    expect(await lastRecord('wf-1')).toBeNull();
    const records: JournalRecord[] = [10, 70_000, 5, 3_000_000, 65_000, 1].map((length, index) =>
      aRecord(index + 1, 'x'.repeat(length)),
    );
    for (const record of records) {
      await journal.append([record]);
      expect(await lastRecord('wf-1')).toEqual(record);
    }
    await journal.close();
    const { size } = await stat(journalPath);
    await truncate(journalPath, size - 5);
    expect(await lastRecord('wf-1')).toEqual(records[4]);
    const whole = await readFile(journalPath);
    await writeFile(journalPath, Buffer.concat([whole.subarray(0, size - 200_000), Buffer.alloc(100, 10)]));
    expect(await lastRecord('wf-1')).toBeNull();
  });

  test('reads 10,000 records', async () => {
    await begin(store, 'wf-1', 10_000);
    const { records } = await store.read('wf-1');
    expect(records).toHaveLength(10_000);
    expect(records[9_999]).toEqual(aRecord(10_000));
  });

  test('a concurrent reader sees only complete records', async () => {
    const journal = await store.create('wf-1', aProgram());
    const write = async (): Promise<void> => {
      for (let seq = 1; seq <= 200; seq++) await journal.append([aRecord(seq, 'x'.repeat(seq * 30))]);
    };
    const written = write();
    for (let last = 0; last < 200; ) {
      const { length } = (await store.read('wf-1')).records;
      expect(length).toBeGreaterThanOrEqual(last);
      last = length;
    }
    await written;
    await journal.close();
  });
});

describe('following a journal', () => {
  const events: JournalEvent[] = [];
  let stop: AbortController;
  let following: Promise<void>;
  let wake = (): void => {};

  const followFrom = (fromSeq: number): void => {
    events.length = 0;
    stop = new AbortController();
    following = (async () => {
      for await (const event of store.follow('wf-1', fromSeq, stop.signal)) {
        events.push(event);
        wake();
      }
    })();
  };
  const next = async (): Promise<JournalEvent> => {
    for (;;) {
      const [event] = events.splice(0, 1);
      if (event !== undefined) return event;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  afterEach(async () => {
    stop.abort();
    await following;
  });

  test('reports a record once it is complete, in whatever pieces it is written (tail/1)', async () => {
    await begin(store, 'wf-1', 3);
    const whole = await readFile(journalPath);
    const third = whole.subarray(0, -1).lastIndexOf('\n') + 1;
    await truncate(journalPath, third);
    followFrom(1);
    expect(await next()).toEqual({ kind: 'records', records: [aRecord(1), aRecord(2)] });
    for (const end of [third + 1, third + 40, whole.length - 1]) {
      await writeFile(journalPath, whole.subarray(0, end), { flag: 'r+' });
      await new Promise((resolve) => setTimeout(resolve, 30));
      expect(events).toEqual([]);
    }
    await writeFile(journalPath, whole, { flag: 'r+' });
    expect(await next()).toEqual({ kind: 'records', records: [aRecord(3)] });
  });

  test('reads only new bytes (tail/2)', async () => {
    await begin(store, 'wf-1', 2_000);
    followFrom(2_001);
    const { size } = await stat(journalPath);
    const journal = await store.open('wf-1');
    await journal.append([aRecord(2_001)]);
    expect(await next()).toEqual({ kind: 'records', records: [aRecord(2_001)] });
    const before = await bytesRead();
    for (let seq = 2_002; seq <= 2_011; seq++) {
      await journal.append([aRecord(seq)]);
      expect(await next()).toEqual({ kind: 'records', records: [aRecord(seq)] });
    }
    await journal.close();
    if (before !== null) expect((await bytesRead()) ?? Infinity).toBeLessThan(before + size / 4);
  });

  test('reports a truncated write that the next engine removes', async () => {
    await begin(store, 'wf-1', 2);
    await writeFile(journalPath, '{"seq":3,"at":"20', { flag: 'a' });
    followFrom(1);
    expect(await next()).toMatchObject({ kind: 'records' });
    const journal = await store.open('wf-1');
    expect(await next()).toEqual({ kind: 'cut', lastSeq: 2 });
    await journal.append([aRecord(3)]);
    expect(await next()).toEqual({ kind: 'records', records: [aRecord(3)] });
    await journal.close();
  });

  test('withdraws records that were reported and did not become durable (tail/4)', async () => {
    await begin(store, 'wf-1', 4);
    followFrom(1);
    await next();
    const whole = await readFile(journalPath);
    await truncate(journalPath, whole.indexOf('"seq":3') - 1);
    expect(await next()).toEqual({ kind: 'cut', lastSeq: 2 });
    const journal = await store.open('wf-1');
    await journal.append([aRecord(3, 'anew')]);
    expect(await next()).toEqual({ kind: 'records', records: [aRecord(3, 'anew')] });
    await journal.close();
  });

  test('also if others replaced them before anybody read', async () => {
    await begin(store, 'wf-1', 4);
    const whole = await readFile(journalPath);
    await truncate(journalPath, whole.indexOf('"seq":3') - 1);
    const journal = await store.open('wf-1');
    await journal.append([aRecord(3, 'anew'), aRecord(4, 'anew'), aRecord(5)]);
    await journal.close();
    const changed = await readFile(journalPath);
    await writeFile(journalPath, whole);
    followFrom(1);
    await next();
    await writeFile(journalPath, changed, { flag: 'r+' });
    expect(await next()).toEqual({ kind: 'cut', lastSeq: 2 });
    expect(await next()).toMatchObject({ kind: 'records', records: [{ seq: 3 }, { seq: 4 }, { seq: 5 }] });
  });

  test.each([
    ['deleted', 'deleted', () => unlink(journalPath)],
    ['deleted with its run', 'deleted', () => rm(join(folder, 'wf-1'), { recursive: true })],
    [
      'replaced by another file',
      'replaced',
      async () => {
        await writeFile(`${journalPath}.new`, await readFile(journalPath));
        await rename(`${journalPath}.new`, journalPath);
      },
    ],
    ['damaged', 'damaged', () => writeFile(journalPath, 'one\ntwo\n', { flag: 'a' })],
  ] as const)('a journal that is %s is distinguished from every other', async (_title, why, act) => {
    await begin(store, 'wf-1', 2);
    followFrom(1);
    await next();
    await act();
    const event = await next();
    expect(event).toMatchObject({ kind: 'lost', why });
    if (event.kind === 'lost') expect(event.refusal.message).toContain('wf-1');
    await following;
    expect(events).toEqual([]);
  });

  test('distinguishes a journal of another run in the same file from a truncated one', async () => {
    await begin(store, 'wf-1', 3);
    const other = await store.create('other', aProgram());
    await other.append([aRecord(1, 'x'), aRecord(2, 'x'), aRecord(3, 'x'), aRecord(4)]);
    await other.close();
    followFrom(1);
    await next();
    await writeFile(journalPath, await readFile(join(folder, 'other', 'journal.jsonl')), { flag: 'r+' });
    expect(await next()).toMatchObject({ kind: 'lost', why: 'replaced' });
  });

  test('leaves a journal of a later format to a later version', async () => {
    await begin(store, 'wf-1', 1);
    await writeFile(journalPath, '{"format":3,"and":"whatever it says"}\n');
    followFrom(1);
    expect(await next()).toMatchObject({ kind: 'lost', why: 'other-format' });
  });
});

/** The bytes that this process has read from files; null if the system does not report it. */
async function bytesRead(): Promise<number | null> {
  if (process.platform !== 'linux') return null;
  return Number(/^rchar: (\d+)/.exec(await readFile('/proc/self/io', 'utf8'))?.[1] ?? Number.NaN);
}

async function lastRecord(id: string): Promise<JournalRecord | null> {
  const [entry] = await store.list({ prefix: id });
  return entry?.last ?? null;
}

function writeState(id: string, text: string): Promise<void> {
  return stateFile(join(folder, `${id}.yaml`)).write(text);
}

/** The first `count` events. */
async function followed(id: string, fromSeq: number, count: number): Promise<readonly JournalEvent[]> {
  const events: JournalEvent[] = [];
  for await (const event of store.follow(id, fromSeq)) {
    events.push(event);
    if (events.length === count) break;
  }
  return events;
}

/** Sits between a journal and its file, and fails on request. */
class Disk {
  readonly calls: string[] = [];
  bytesLeft = Infinity;
  bytesAtOnce = Infinity;
  takesNothing = false;
  syncError: string | null = null;
  truncateError: string | null = null;
  syncReached: Promise<void> = Promise.resolve();
  #reach = (): void => {};
  #gate: Promise<void> = Promise.resolve();

  readonly wrapFile = (file: AppendFile): AppendFile => ({
    write: async (bytes) => {
      this.calls.push('write');
      if (this.takesNothing) return 0;
      if (this.bytesLeft === 0) throw systemError('ENOSPC', 'write');
      const taken = await file.write(bytes.subarray(0, Math.min(this.bytesLeft, this.bytesAtOnce, bytes.length)));
      this.bytesLeft -= taken;
      return taken;
    },
    datasync: async () => {
      this.calls.push('datasync');
      this.#reach();
      await this.#gate;
      if (this.syncError !== null) throw systemError(this.syncError, 'fdatasync');
      await file.datasync();
    },
    truncate: async (size) => {
      this.calls.push('truncate');
      if (this.truncateError !== null) throw systemError(this.truncateError, 'ftruncate');
      await file.truncate(size);
    },
    close: () => {
      this.calls.push('close');
      return file.close();
    },
  });

  /** Blocks datasync until the returned function is called. */
  holdSync(): () => void {
    let open = (): void => {};
    this.#gate = new Promise((resolve) => {
      open = resolve;
    });
    this.syncReached = new Promise((resolve) => {
      this.#reach = resolve;
    });
    return open;
  }
}

function systemError(code: string, syscall: string): Error {
  return Object.assign(new Error(`${code}: ${syscall}`), { code, syscall });
}

function flipped(bytes: Buffer, offset: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[offset] = (copy[offset] ?? 0) ^ 2;
  return copy;
}

function countLines(bytes: Buffer): number {
  return bytes.toString('latin1').split('\n').length - 1;
}

/** Permissions do not restrict root. */
async function asNobody<T>(act: () => Promise<T>): Promise<T> {
  if (process.getuid?.() !== 0) return act();
  const { uid } = await stat(project);
  process.seteuid?.(65_534);
  try {
    return await act();
  } finally {
    process.seteuid?.(uid);
  }
}
