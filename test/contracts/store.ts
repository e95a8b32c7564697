// What every store keeps to, called with a factory by the test of each. Titles are the promises of `engine/ports.ts`.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { Bug } from '../../src/base/assert.ts';
import { UsageError } from '../../src/base/usage-error.ts';
import type { Store } from '../../src/engine/ports.ts';
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

    test('ids as long as a workflow that calls itself is deep are found again, as they were', async () => {
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

    test('what was appended is found again, as it was', async () => {
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

    test('the hash of a program tells whether it is the same', async () => {
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

    test('appends in flight together keep their order', async () => {
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

    test('a record that is changed after its append is kept as it was', async () => {
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

    test('nothing appended is nothing done', async () => {
      const journal = await store.create('wf-1', aProgram());
      await journal.append([]);
      await journal.append([aRecord(1)]);
      await journal.close();
      expect((await store.read('wf-1')).records).toHaveLength(1);
    });

    test('a record out of sequence is our fault, and does no harm to the journal', async () => {
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
      expect(refusal.message).toBe('there is a run wf-1 already');
      expect(refusal.hint).toContain('meow status wf-1');
      expect((await store.read('wf-1')).records).toHaveLength(2);
    });

    test('a run has one writer', async () => {
      const journal = await store.create('wf-1', aProgram());
      await journal.append([aRecord(1)]);
      const refusal = await refusalOf(store.open('wf-1'));
      expect(refusal.message).toMatch(/^run wf-1 is held by /);
      expect(refusal.hint).toContain('meow stop wf-1');
      expect(refusal.hint).toContain('meow status wf-1');
      expect((await refusalOf(store.create('wf-1', aProgram()))).message).toMatch(/^run wf-1 is held by /);
      await journal.append([aRecord(2)]);
      await journal.close();

      const again = await store.open('wf-1');
      await refusalOf(store.open('wf-1'));
      expect(again.records).toHaveLength(2);
      await again.close();
    });

    test('runs do not stand in each other’s way', async () => {
      const journals = await Promise.all(['a', 'b', 'c'].map((id) => store.create(id, aProgram())));
      await Promise.all(journals.map((journal) => journal.append([aRecord(1)])));
      await Promise.all(journals.map((journal) => journal.close()));
      expect((await store.read('b')).records).toEqual([aRecord(1)]);
    });

    test('a run that is released without a record never was', async () => {
      await (await store.create('wf-1', aProgram())).close();
      for (const ask of ['open', 'read'] as const) {
        expect((await refusalOf(store[ask]('wf-1'))).message).toBe('there is no run wf-1');
      }
      const journal = await store.create('wf-1', { ...aProgram(), drainMs: 7 });
      await journal.append([aRecord(1)]);
      await journal.close();
      expect((await store.read('wf-1')).program.drainMs).toBe(7);
    });

    test('a run that is not there is named, with the one that was meant', async () => {
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
      '%j is no run id',
      async (id) => {
        for (const ask of ['open', 'read'] as const) {
          expect((await refusalOf(store[ask](id))).message).toContain('is no run id');
        }
        expect((await refusalOf(store.create(id, aProgram()))).message).toContain('is no run id');
      },
    );

    test('close can be said twice, and nothing is appended after it', async () => {
      const journal = await store.create('wf-1', aProgram());
      await Promise.all([journal.append([aRecord(1)]), journal.close(), journal.close()]);
      await journal.close();
      await expect(journal.append([aRecord(2)])).rejects.toThrow(Bug);
      expect((await store.read('wf-1')).records).toHaveLength(1);
    });
  });
}

/** A run with so many records, which nobody holds. */
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
