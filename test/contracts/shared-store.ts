// The contract of stores that several machines share, called with a factory by the test of each: one run has one writer,
// whatever happens to machines, connections and the server.

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import type { Store } from '../../src/engine/ports.ts';
import { encodeProgram, encodeRecords, hashProgram } from '../../src/stores/journal-lines.ts';
import { begin, refusalOf } from './store.ts';
import { aProgram, aRecord } from './store-samples.ts';

export interface SharedStoresUnderTest {
  /** On a machine that keeps witnesses, behind a connection that can be cut. */
  readonly first: Store & { restore(runId: string): Promise<number> };
  /** On another machine, which may take runs without their files. */
  readonly second: Store;
  restart(): Promise<void>;
  halt(): Promise<void>;
  start(): Promise<void>;
  /** Ends the connections of the first machine; it may connect again. */
  cut(): void;
  /** The answer to the next append of the first machine is lost. */
  loseAnswer(): void;
  /** The first machine is dead or disconnected for the others, although it still runs. */
  interruptFirst(): Promise<void>;
  /** The database loses the records from this one on, as a standby that was behind. */
  loseRecords(runId: string, from: number): Promise<void>;
  /** One byte of a record changes. */
  spoil(runId: string, seq: number): Promise<void>;
  storedBytes(runId: string): Promise<{ readonly lines: Buffer; readonly program: Buffer }>;
  dispose(): Promise<void>;
}

export function sharedStoreContract(name: string, factory: () => Promise<SharedStoresUnderTest>): void {
  describe(`shared store: ${name}`, () => {
    let subject: SharedStoresUnderTest;
    let first: SharedStoresUnderTest['first'];
    let second: Store;
    beforeEach(async () => {
      subject = await factory();
      ({ first, second } = subject);
    });
    afterEach(() => subject.dispose());

    const seqs = async (store: Store, runId = 'wf-1'): Promise<readonly number[]> =>
      (await store.read(runId)).records.map(({ seq }) => seq);

    test('records and program are stored as the bytes that a file would have', async () => {
      await begin(first, 'wf-1', 3);
      const { lines, program } = await subject.storedBytes('wf-1');
      expect(program.toString()).toBe(encodeProgram(aProgram(), hashProgram(aProgram())));
      expect(lines.toString()).toBe(encodeRecords([aRecord(1), aRecord(2), aRecord(3)], 0));
    });

    test('what one machine records, another reads and follows', async () => {
      const journal = await first.create('wf-1', aProgram());
      await journal.append([aRecord(1)]);
      expect((await second.list()).map(({ id }) => id)).toEqual(['wf-1']);
      expect(await second.holder('wf-1')).toMatchObject({ pid: process.pid });
      const found: number[] = [];
      for await (const event of second.follow('wf-1', 1)) {
        if (event.kind === 'records') found.push(...event.records.map(({ seq }) => seq));
        if (found.length === 1) await journal.append([aRecord(2)]);
        else break;
      }
      expect(found).toEqual([1, 2]);
      await journal.close();
    });

    test('of two writers at once, one gets the run', async () => {
      await begin(first, 'wf-1', 1);
      for (let round = 0; round < 10; round++) {
        const answers = await Promise.allSettled([first.open('wf-1'), second.open('wf-1')]);
        const taken = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
        const refused = answers.flatMap((answer) => (answer.status === 'rejected' ? [String(answer.reason)] : []));
        expect(taken).toHaveLength(1);
        expect(refused).toEqual([expect.stringMatching(/is locked by|waits for that machine/)]);
        await taken[0]?.close();
        // The run belongs to the machine that had it last.
        if (round === 0) break;
      }
    });

    test('of two that create a run at once, one creates it', async () => {
      const answers = await Promise.allSettled([first.create('wf-1', aProgram()), second.create('wf-1', aProgram())]);
      const [journal, ...more] = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
      expect(more).toEqual([]);
      await journal?.append([aRecord(1)]);
      await journal?.close();
      expect(await seqs(second)).toEqual([1]);
    });

    test('a run waits for the machine that has its files', async () => {
      await begin(second, 'wf-1', 1);
      const refusal = await refusalOf(first.open('wf-1'));
      expect(refusal.message).toBe('the files of run wf-1 are on the machine m2, so it waits for that machine');
      expect(refusal.hint).toContain('meow resume wf-1 --fleet --here');
    });

    test('a run whose owner lives is not taken', async () => {
      const journal = await first.create('wf-1', aProgram());
      await journal.append([aRecord(1)]);
      expect((await refusalOf(second.open('wf-1'))).message).toContain('is locked by another engine');
      await journal.append([aRecord(2)]);
      await journal.close();
    });

    test('after a takeover, an append of the former writer leaves nothing', async () => {
      const former = await first.create('wf-1', aProgram());
      await former.append([aRecord(1)]);
      await subject.interruptFirst();
      expect(await second.holder('wf-1')).toBeNull();
      const journal = await second.open('wf-1');
      const late = await refusalOf(former.append([aRecord(2, 'late')]));
      expect(late.message).toContain('was taken by another process');
      await refusalOf(former.append([aRecord(3)]));
      await journal.append([aRecord(2, 'next')]);
      await refusalOf(former.append([aRecord(3)]));
      // Neither does its end release the other's take.
      await former.close();
      expect(await second.holder('wf-1')).not.toBeNull();
      await journal.close();
      expect((await second.read('wf-1')).records).toEqual([aRecord(1), aRecord(2, 'next')]);
    });

    test('an append whose answer is lost is stored once', async () => {
      const journal = await first.create('wf-1', aProgram());
      await journal.append([aRecord(1)]);
      subject.loseAnswer();
      await journal.append([aRecord(2), aRecord(3)]);
      await journal.append([aRecord(4)]);
      await journal.close();
      expect((await second.read('wf-1')).records).toEqual([1, 2, 3, 4].map((seq) => aRecord(seq)));
    });

    test('appends that wait together are committed together, in order', async () => {
      const journal = await first.create('wf-1', aProgram());
      await Promise.all(Array.from({ length: 300 }, (_, at) => journal.append([aRecord(at + 1)])));
      await journal.close();
      expect(await seqs(second)).toEqual(Array.from({ length: 300 }, (_, at) => at + 1));
    });

    test('a writer whose connection is cut connects again and keeps its run', async () => {
      const journal = await first.create('wf-1', aProgram());
      for (let seq = 1; seq <= 5; seq++) {
        const appended = journal.append([aRecord(seq)]);
        subject.cut();
        await appended;
      }
      await journal.close();
      expect(await seqs(second)).toEqual([1, 2, 3, 4, 5]);
    });

    test('appends wait for a database that restarts, and the run stays with its owner', async () => {
      const journal = await first.create('wf-1', aProgram());
      await journal.append([aRecord(1)]);
      await subject.halt();
      const waiting = Promise.all([journal.append([aRecord(2)]), journal.append([aRecord(3)])]);
      await subject.start();
      // All locks are gone; nobody takes a run because of that.
      expect((await refusalOf(second.open('wf-1'))).message).toContain('is locked by another engine');
      await waiting;
      await journal.append([aRecord(4)]);
      await journal.close();
      expect(await seqs(second)).toEqual([1, 2, 3, 4]);
    });

    test('a reader of a database that is away is told so', async () => {
      await begin(first, 'wf-1', 1);
      await subject.halt();
      const refusal = await refusalOf(second.read('wf-1'));
      expect(refusal.message).toContain('does not answer');
      await subject.start();
      expect(await seqs(second)).toEqual([1]);
    });

    test('a run whose last records the database has lost is held until they are restored', async () => {
      const journal = await first.create('wf-1', aProgram());
      await journal.append([aRecord(1), aRecord(2), aRecord(3)]);
      await subject.loseRecords('wf-1', 2);
      const held = await refusalOf(journal.append([aRecord(4)]));
      expect(held.message).toContain('run wf-1 is held: the database has lost its last records');
      expect(held.hint).toContain('meow fleet restore wf-1');
      await journal.close();
      expect((await refusalOf(first.open('wf-1'))).message).toBe(held.message);
      expect(await seqs(second)).toEqual([1]);

      expect(await first.restore('wf-1')).toBe(2);
      expect(await first.restore('wf-1')).toBe(0);
      const again = await first.open('wf-1');
      expect(again.records).toEqual([aRecord(1), aRecord(2), aRecord(3)]);
      await again.append([aRecord(4)]);
      await again.close();
    });

    test('a damaged record is refused, and the run is not changed', async () => {
      await begin(first, 'wf-1', 3);
      await begin(first, 'wf-2', 1);
      for (const seq of [3, 2, 1]) {
        await subject.spoil('wf-1', seq);
        const refusal = await refusalOf(first.read('wf-1'));
        expect(refusal.message).toBe(
          `the journal of run wf-1 is damaged in the database: record ${seq} cannot be trusted`,
        );
        await refusalOf(second.open('wf-1'));
      }
      expect((await second.list()).map(({ id }) => id).toSorted()).toEqual(['wf-1', 'wf-2']);
    });

    test('a file is read whole while another version replaces it', async () => {
      const journal = await first.create('wf-1', aProgram());
      await journal.append([aRecord(1)]);
      const files = first.files('wf-1');
      const large = (letter: string): Buffer => Buffer.alloc(700_000, letter);
      await files.replace('report', large('a'));
      const writing = (async () => {
        for (const letter of ['b', 'c', 'd', 'e']) await files.replace('report', large(letter));
      })();
      const read = async (): Promise<string> => {
        const bytes = Buffer.from((await second.files('wf-1').read('report')) ?? []);
        const letter = bytes.toString('latin1', 0, 1);
        expect(bytes.equals(large(letter))).toBe(true);
        return letter;
      };
      while ((await read()) !== 'e');
      await writing;
      await journal.close();
    });
  });
}
