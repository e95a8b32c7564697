// The store in PostgreSQL, against the contract of every store and that of shared ones.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';

import type { Owner } from '../../src/stores/postgres/owner-session.ts';
import { postgresStore } from '../../src/stores/postgres/store.ts';
import { HAS_POSTGRES, Relay, sayWithout, TestPostgres } from '../rig/postgres.ts';
import { sharedStoreContract } from './shared-store.ts';
import { storeContract } from './store.ts';

const machine = (id: string): Owner => ({ id, kind: 'machine', hostId: 'host' });

sayWithout();
describe.skipIf(!HAS_POSTGRES)('PostgreSQL', () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await TestPostgres.start();
  });
  afterAll(() => server?.dispose());

  storeContract('postgres', async () => {
    const store = postgresStore({ address: await server.namespace(), owner: machine('m1') });
    return { store, dispose: () => store.close() };
  });

  sharedStoreContract('postgres', async () => {
    const address = await server.namespace();
    const schema = `meow_${address.namespace}`;
    const relay = await Relay.before(address);
    const folder = mkdtempSync(join(tmpdir(), 'meow-home-'));
    const stores = [
      postgresStore({ address: relay.address, owner: machine('m1'), home: folder }),
      postgresStore({ address, owner: machine('m2'), withoutFiles: true }),
    ] as const;
    return {
      first: stores[0],
      second: stores[1],
      restart: () => server.restart(),
      halt: () => server.halt(),
      start: () => server.start(),
      cut: () => relay.cut(),
      loseAnswer: () => relay.loseAnswerTo('.append('),
      async interruptFirst() {
        // As if the machine was silent for long: its session ends, and nothing of it connects again.
        await server.sql(`update ${schema}.owners set backend = 0, since = clock_timestamp() where id = 'm1'`);
      },
      async loseRecords(runId, from) {
        await server.sql(`delete from ${schema}.records where run = $1 and seq >= $2`, [runId, from]);
        await server.sql(`update ${schema}.runs set head = $2 where id = $1`, [runId, from - 1]);
      },
      async spoil(runId, seq) {
        await server.sql(
          `update ${schema}.records set line = overlay(line placing '\\x00' from 30) where run = $1 and seq = $2`,
          [runId, seq],
        );
      },
      async storedBytes(runId) {
        const [found] = await server.sql<{ lines: Buffer; program: Buffer }>(
          `select program, (select string_agg(line, '' order by seq) from ${schema}.records where run = id) as lines from ${schema}.runs where id = $1`,
          [runId],
        );
        return { lines: found?.lines ?? Buffer.alloc(0), program: found?.program ?? Buffer.alloc(0) };
      },
      async dispose() {
        await server.start();
        await Promise.all(stores.map((store) => store.close()));
        await relay.dispose();
        rmSync(folder, { recursive: true });
      },
    };
  });
});
