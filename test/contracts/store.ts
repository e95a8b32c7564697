// The contract of every store, called with a factory by the test of each. Titles are the promises of `engine/ports.ts`.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { Bug, UsageError } from '../../src/base/errors.ts';
import type { JournalEvent, RunFiles, Store } from '../../src/engine/ports.ts';
import { success } from '../../src/ir/effect.ts';
import type { JournalRecord } from '../../src/kernel/decision.ts';
import { aProgram, aRecord } from './store-samples.ts';

export interface StoreUnderTest {
  readonly store: Store;
  dispose(): Promise<void>;
}

export function storeContract(name: string, factory: () => Promise<StoreUnderTest>): void {
  describe(`store: ${name}`, () => {
    let subject: StoreUnderTest;
    let store: Store;
    beforeEach(async () => {
      subject = await factory();
      store = subject.store;
    });
    afterEach(() => subject.dispose());

    test('a new run has its program and no records', async () => {
      const journal = await store.create('wf-1', aProgram());
      expect(journal.program).toEqual(aProgram());
      expect(journal.programHash).toMatch(/^[0-9a-f]{64}$/);
      expect(journal.records).toEqual([]);
      expect(await store.read('wf-1')).toEqual({ program: aProgram(), programHash: journal.programHash, records: [] });
      await journal.close();
    });

    test('very long ids, as of a deeply recursive workflow, are read back unchanged', async () => {
      const deep = 'loop.'.repeat(1_000);
      const decisions: JournalRecord['decisions'] = [
        { kind: 'steps-added', frame: deep, block: 'main', steps: [`${deep}work`, `${deep}loop`] },
        { kind: 'warned', message: '‥7‥ is no mark' },
        { kind: 'steps-skipped', steps: [deep.slice(0, 300), 'other.'.repeat(100), 'short'], why: 'need' },
      ];
      const effect = `${deep}loop#1`;
      const records: JournalRecord[] = [
        aRecord(1),
        { ...aRecord(2), input: { kind: 'effect-finished', effect, outcome: success() }, decisions },
      ];
      const journal = await store.create('wf-1', aProgram());
      await journal.append(records);
      await journal.close();
      expect((await store.read('wf-1')).records).toEqual(records);
    });

    test('appended records are read back unchanged', async () => {
      const records = [
        aRecord(1),
        aRecord(2, 'line\nbreak \0 "quotes" ünï \u2028 \ud800 ,"crc":"00000000"}'),
        aRecord(3, 'x'.repeat(200_000)),
      ];
      const journal = await store.create('wf-1', aProgram());
      await journal.append(records.slice(0, 1));
      await journal.append(records.slice(1));
      expect((await store.read('wf-1')).records).toEqual(records);
      await journal.close();

      const again = await store.open('wf-1');
      expect(again.records).toEqual(records);
      expect(again.program).toEqual(aProgram());
      expect(again.programHash).toBe(journal.programHash);
      await again.append([aRecord(4)]);
      await again.close();
      expect((await store.read('wf-1')).records).toEqual([...records, aRecord(4)]);
    });

    test('the hash of a program shows whether it is the same', async () => {
      const program = aProgram();
      const hashes: string[] = [];
      for (const [id, each] of [
        ['a', program],
        ['b', structuredClone(program)],
        ['c', { ...program, drainMs: 1 }],
      ] as const) {
        const journal = await store.create(id, each);
        hashes.push(journal.programHash);
        await journal.close();
      }
      expect(hashes[1]).toBe(hashes[0]);
      expect(hashes[2]).not.toBe(hashes[0]);
    });

    test('concurrent appends keep their order', async () => {
      const journal = await store.create('wf-1', aProgram());
      const kept: number[] = [];
      const appends: Promise<void>[] = [];
      for (let seq = 1; seq <= 200; seq += 2) {
        appends.push(journal.append([aRecord(seq), aRecord(seq + 1)]).then(() => void kept.push(seq)));
        if (seq % 30 === 1) await new Promise((resolve) => setImmediate(resolve));
      }
      await Promise.all(appends);
      expect(kept).toEqual(Array.from({ length: 100 }, (_, index) => index * 2 + 1));
      await journal.close();
      expect((await store.read('wf-1')).records).toEqual(Array.from({ length: 200 }, (_, index) => aRecord(index + 1)));
    });

    test('a record that is changed after its append is stored as it was', async () => {
      const journal = await store.create('wf-1', aProgram());
      const outputs: Record<string, string> = { stdout: 'before' };
      const record: JournalRecord = {
        ...aRecord(1),
        input: { kind: 'effect-finished', effect: 'a#1', outcome: success(outputs) },
      };
      const appended = journal.append([record]);
      outputs['stdout'] = 'after';
      await appended;
      await journal.close();
      expect(JSON.stringify((await store.read('wf-1')).records)).toContain('before');
    });

    test('an empty append does nothing', async () => {
      const journal = await store.create('wf-1', aProgram());
      await journal.append([]);
      await journal.append([aRecord(1)]);
      await journal.close();
      expect((await store.read('wf-1')).records).toHaveLength(1);
    });

    test('a record out of sequence is a bug, and does not harm the journal', async () => {
      const journal = await store.create('wf-1', aProgram());
      await journal.append([aRecord(1)]);
      await expect(journal.append([aRecord(1)])).rejects.toThrow(Bug);
      await expect(journal.append([aRecord(3)])).rejects.toThrow(Bug);
      await expect(journal.append([aRecord(2), aRecord(4)])).rejects.toThrow(Bug);
      await expect(journal.append([{ ...aRecord(2), at: 0.5 }])).rejects.toThrow(Bug);
      await journal.append([aRecord(2)]);
      await journal.close();
      expect((await store.read('wf-1')).records).toEqual([aRecord(1), aRecord(2)]);
    });

    test('an id names one run', async () => {
      await begin(store, 'wf-1', 2);
      const refusal = await refusalOf(store.create('wf-1', aProgram()));
      expect(refusal.message).toBe('run wf-1 already exists');
      expect(refusal.hint).toContain('meow status wf-1');
      expect((await store.read('wf-1')).records).toHaveLength(2);
    });

    test('a run has one writer', async () => {
      const journal = await store.create('wf-1', aProgram());
      await journal.append([aRecord(1)]);
      const refusal = await refusalOf(store.open('wf-1'));
      expect(refusal.message).toMatch(/^run wf-1 is locked by /);
      expect(refusal.hint).toContain('meow stop wf-1');
      expect(refusal.hint).toContain('meow status wf-1');
      expect((await refusalOf(store.create('wf-1', aProgram()))).message).toMatch(/^run wf-1 is locked by /);
      await journal.append([aRecord(2)]);
      await journal.close();

      const again = await store.open('wf-1');
      await refusalOf(store.open('wf-1'));
      expect(again.records).toHaveLength(2);
      await again.close();
    });

    test('runs do not affect each other', async () => {
      const journals = await Promise.all(['a', 'b', 'c'].map((id) => store.create(id, aProgram())));
      await Promise.all(journals.map((journal) => journal.append([aRecord(1)])));
      await Promise.all(journals.map((journal) => journal.close()));
      expect((await store.read('b')).records).toEqual([aRecord(1)]);
    });

    test('a run that is released without a record never existed', async () => {
      await (await store.create('wf-1', aProgram())).close();
      for (const ask of ['open', 'read'] as const) {
        expect((await refusalOf(store[ask]('wf-1'))).message).toBe('there is no run wf-1');
      }
      const journal = await store.create('wf-1', { ...aProgram(), drainMs: 7 });
      await journal.append([aRecord(1)]);
      await journal.close();
      expect((await store.read('wf-1')).program.drainMs).toBe(7);
    });

    test('an unknown run is refused, with a suggestion', async () => {
      for (const ask of ['open', 'read'] as const) {
        expect((await refusalOf(store[ask]('wf-abc'))).hint).toContain('meow run');
      }
      await begin(store, 'wf-abd', 1);
      for (const ask of ['open', 'read'] as const) {
        const refusal = await refusalOf(store[ask]('wf-abc'));
        expect(refusal.message).toBe('there is no run wf-abc');
        expect(refusal.hint).toBe('did you mean wf-abd? all runs: meow list');
      }
    });

    test.each(['', '.', '..', '../wf-1', 'a/b', 'a.b', 'a b', 'wf-1\n', 'ä', '\0', 'x'.repeat(41)])(
      '%j is not a run id',
      async (id) => {
        for (const ask of ['open', 'read'] as const) {
          expect((await refusalOf(store[ask](id))).message).toContain('is not a run id');
        }
        expect((await refusalOf(store.create(id, aProgram()))).message).toContain('is not a run id');
      },
    );

    test('close can be called twice, and nothing is appended after it', async () => {
      const journal = await store.create('wf-1', aProgram());
      await Promise.all([journal.append([aRecord(1)]), journal.close(), journal.close()]);
      await journal.close();
      await expect(journal.append([aRecord(2)])).rejects.toThrow(Bug);
      expect((await store.read('wf-1')).records).toHaveLength(1);
    });

    test('lists runs with a summary, the most recently active first', async () => {
      expect(await store.list()).toEqual([]);
      for (const id of ['a', 'b', 'c']) {
        await begin(store, id, 2);
        await moment();
      }
      const journal = await store.open('b');
      await journal.append([aRecord(3)]);
      const entries = await store.list();
      expect(entries.map(({ id }) => id)).toEqual(['b', 'c', 'a']);
      expect(entries[0]).toEqual({
        id: 'b',
        changedAt: entries[0]?.changedAt,
        source: aProgram().source,
        startedAt: aRecord(1).at,
        last: aRecord(3),
      });
      expect(Math.abs((entries[0]?.changedAt ?? 0) - Date.now())).toBeLessThan(60_000);
      await journal.close();
    });

    test('lists the runs with an id prefix, up to a limit', async () => {
      for (const id of ['wf-1', 'wf-12', 'x']) {
        await begin(store, id, 1);
        await moment();
      }
      expect((await store.list({ prefix: 'wf-1' })).map(({ id }) => id)).toEqual(['wf-12', 'wf-1']);
      expect((await store.list({ limit: 1 })).map(({ id }) => id)).toEqual(['x']);
      expect(await store.list({ prefix: 'none' })).toEqual([]);
    });

    test('a run without a record has no start and no last record', async () => {
      const journal = await store.create('wf-1', aProgram());
      expect(await store.list()).toMatchObject([{ id: 'wf-1', startedAt: null, last: null }]);
      await journal.close();
    });

    test('names the engine that holds a run, and no other', async () => {
      expect(await store.holder('wf-1')).toBeNull();
      const journal = await store.create('wf-1', aProgram());
      await journal.append([aRecord(1)]);
      const holder = await store.holder('wf-1');
      expect(holder).toMatchObject({ pid: process.pid });
      expect(holder?.host).not.toBe('');
      expect(Number.isNaN(Date.parse(holder?.since ?? ''))).toBe(false);
      await journal.close();
      expect(await store.holder('wf-1')).toBeNull();
      await moment();
      const again = await store.open('wf-1');
      expect((await store.holder('wf-1'))?.take).not.toBe(holder?.take);
      await again.close();
    });

    test('the text of a program can be read alone', async () => {
      await begin(store, 'wf-1', 1);
      expect(await store.programText('wf-1')).toContain(JSON.stringify(aProgram().source));
      expect(await store.programText('wf-2')).toBe('');
    });

    test('follows a run from a record: first existing ones, then new ones', async () => {
      const journal = await store.create('wf-1', aProgram());
      await journal.append([aRecord(1), aRecord(2), aRecord(3)]);
      const found: JournalRecord[] = [];
      const followers = [1, 3, 5].map(async (fromSeq) => {
        const mine: JournalRecord[] = [];
        for await (const event of store.follow('wf-1', fromSeq === 5 ? 4 : fromSeq)) {
          expect(event.kind).toBe('records');
          if (event.kind === 'records') mine.push(...event.records);
          if (fromSeq === 1) found.push(...(event.kind === 'records' ? event.records : []));
          if (mine.at(-1)?.seq === 40) break;
        }
        return mine.map(({ seq }) => seq);
      });
      for (let seq = 4; seq <= 40; seq++) await journal.append([aRecord(seq)]);
      const numbers = (from: number): readonly number[] => Array.from({ length: 41 - from }, (_, at) => from + at);
      expect(await Promise.all(followers)).toEqual([numbers(1), numbers(3), numbers(4)]);
      expect(found).toEqual(numbers(1).map((seq) => aRecord(seq)));
      await journal.close();
    });

    test('a follower can be closed while it waits', async () => {
      await begin(store, 'wf-1', 1);
      const stop = new AbortController();
      const events: JournalEvent[] = [];
      const following = (async () => {
        for await (const event of store.follow('wf-1', 1, stop.signal)) {
          events.push(event);
          setImmediate(() => stop.abort());
        }
      })();
      await following;
      expect(events).toEqual([{ kind: 'records', records: [aRecord(1)] }]);
    });

    test('a follower ahead of the journal is told where the journal ends', async () => {
      await begin(store, 'wf-1', 2);
      const [event] = await firstOf(store.follow('wf-1', 7));
      expect(event).toEqual({ kind: 'cut', lastSeq: 2 });
    });

    test('a run that does not exist or is removed cannot be followed', async () => {
      expect(await firstOf(store.follow('wf-1', 1))).toMatchObject([{ kind: 'lost', why: 'deleted' }]);
      const journal = await store.create('wf-1', aProgram());
      const following = firstOf(store.follow('wf-1', 1));
      await moment();
      await journal.close();
      expect(await following).toMatchObject([{ kind: 'lost', why: 'deleted' }]);
    });

    describe('files', () => {
      let files: RunFiles;
      beforeEach(async () => {
        await begin(store, 'wf-1', 1);
        files = store.files('wf-1');
      });

      test('appended data can be read, completely or in part', async () => {
        await files.append('steps/a/1/stdout', Buffer.from('one '));
        await files.append('steps/a/1/stdout', Buffer.from('two'));
        expect(text(await files.read('steps/a/1/stdout'))).toBe('one two');
        expect(text(await files.read('steps/a/1/stdout', 4))).toBe('two');
        expect(text(await files.read('steps/a/1/stdout', 2, 3))).toBe('e t');
        expect(text(await files.read('steps/a/1/stdout', 7, 10))).toBe('');
        expect(text(await files.read('steps/a/1/stdout', 70))).toBe('');
      });

      test('bytes are stored unchanged', async () => {
        const bytes = Uint8Array.from({ length: 300_000 }, (_, at) => at % 256);
        await files.append('raw', bytes);
        expect(Buffer.compare((await files.read('raw')) ?? new Uint8Array(), bytes)).toBe(0);
      });

      test('a missing file is null', async () => {
        await files.append('steps/a/1/stdout', Buffer.from('x'));
        expect(await files.read('steps/b/1/stdout')).toBeNull();
        expect(await files.read('steps/a/1')).toBeNull();
        expect(await files.read('steps/a/1/stdout/x')).toBeNull();
        expect(await files.list('steps/b')).toEqual([]);
        await files.remove('steps/b');
      });

      test('a folder lists its direct entries, by name', async () => {
        await files.append('steps/a/1/stdout', Buffer.from('abc'));
        await files.append('steps/a/1/outputs/x', Buffer.from('1'));
        await files.append('steps/a/1/outputs/y', Buffer.from('2'));
        await files.append('steps/a/2/stdout', Buffer.from(''));
        expect(await files.list('steps/a')).toEqual([
          { name: '1', kind: 'folder', size: 0 },
          { name: '2', kind: 'folder', size: 0 },
        ]);
        expect(await files.list('steps/a/1')).toEqual([
          { name: 'outputs', kind: 'folder', size: 0 },
          { name: 'stdout', kind: 'file', size: 3 },
        ]);
        expect((await files.list('')).some(({ name }) => name === 'steps')).toBe(true);
      });

      test('a file is replaced atomically', async () => {
        await files.replace('agents/a/current', Buffer.from('the first, which is longer'));
        await files.replace('agents/a/current', Buffer.from('the second'));
        expect(text(await files.read('agents/a/current'))).toBe('the second');
        expect((await files.list('agents/a')).map(({ name }) => name)).toEqual(['current']);
      });

      test('a removed folder is gone, with its contents', async () => {
        await files.append('steps/a/1/stdout', Buffer.from('x'));
        await files.append('steps/ab', Buffer.from('x'));
        await files.remove('steps/a');
        expect(await files.list('steps')).toEqual([{ name: 'ab', kind: 'file', size: 1 }]);
        await files.remove('steps/ab');
        expect(await files.read('steps/ab')).toBeNull();
      });

      test('a change in a folder wakes its watchers', async () => {
        await files.append('steps/a/1/stdout', Buffer.from('1'));
        const stop = new AbortController();
        const seen: string[] = [];
        for await (const _ of files.changes('steps/a/1', stop.signal)) {
          const now = text(await files.read('steps/a/1/stdout'));
          if (now !== seen.at(-1)) seen.push(now);
          if (now.length === 4) stop.abort();
          else if (seen.length === now.length) await files.append('steps/a/1/stdout', Buffer.from('x'));
        }
        expect(seen).toEqual(['1', '1x', '1xx', '1xxx']);
      });

      test('the files of one run are separate from those of another', async () => {
        await begin(store, 'wf-2', 1);
        await files.append('x', Buffer.from('1'));
        expect(await store.files('wf-2').read('x')).toBeNull();
        expect(text(await store.files('wf-1').read('x'))).toBe('1');
      });
    });
  });
}

function text(bytes: Uint8Array | null): string {
  return bytes === null ? 'absent' : Buffer.from(bytes).toString('utf8');
}

/** Long enough for two timestamps to differ. */
function moment(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 10));
}

async function firstOf<T>(events: AsyncIterable<T>): Promise<readonly T[]> {
  for await (const event of events) return [event];
  return [];
}

/** A run with this many records, which nobody holds. */
export async function begin(store: Store, runId: string, count: number): Promise<void> {
  const journal = await store.create(runId, aProgram());
  await journal.append(Array.from({ length: count }, (_, index) => aRecord(index + 1)));
  await journal.close();
}

export async function refusalOf(promise: Promise<unknown>): Promise<UsageError> {
  const error = await promise.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(UsageError);
  return error as UsageError;
}
