// A fleet under random kills of its database, of workers, and of whole machines with all commands. The same seed gives the
// same kills: MEOW_KILLS_SEED=7 npx vitest run --project e2e test/e2e/fleet-kills.test.ts

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { decide } from '../../src/kernel/decide.ts';
import { initialState } from '../../src/kernel/state.ts';
import type { FleetAddress } from '../../src/stores/postgres/address.ts';
import { postgresStore } from '../../src/stores/postgres/store.ts';
import { nameFleet } from '../rig/fleet.ts';
import { HAS_POSTGRES, sayWithout, TestPostgres } from '../rig/postgres.ts';
import { type Live, Rig } from '../rig/rig.ts';
import { attempts } from '../rig/sample.ts';

const SEED = Number(process.env['MEOW_KILLS_SEED'] ?? 1);
const KILLS = Number(process.env['MEOW_KILLS'] ?? attempts(32));
const RUNS = 3;

const WORKFLOW = `[main]
name = "killed"

[[main.steps]]
id = "list"
executor = "shell"
command = "printf '[1, 2, 3, 4]' > items.$MEOW_WORKFLOW.json; ${begun()}"

[[main.steps]]
id = "each"
executor = "foreach"
items_file = "items.{{workflow_id}}.json"
item_var = "item"
needs = ["list"]
template = ".one"
parallel = true
max_concurrent = 2

[[main.steps]]
id = "flaky"
executor = "shell"
needs = ["each"]
command = "${begun()}; [ -e flaky.$MEOW_WORKFLOW ] || { touch flaky.$MEOW_WORKFLOW; exit 1; }"
retry = { max_attempts = 3, delay = "100ms" }

[one]
name = "one"
internal = true

[one.variables]
item = { required = true }

[[one.steps]]
id = "work"
executor = "shell"
command = "${begun()}; sleep 0.{{item}}"

[[one.steps]]
id = "more"
executor = "shell"
needs = ["work"]
command = "${begun()}"
`;

/** Each attempt leaves a line. */
function begun(): string {
  return 'echo $MEOW_WORKFLOW $MEOW_STEP $MEOW_ATTEMPT >> begun';
}

sayWithout();
describe.skipIf(!HAS_POSTGRES)('a fleet under random kills', () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await TestPostgres.start();
  });
  afterAll(() => server?.dispose());

  test(`${KILLS} kills with seed ${SEED}: no step runs again, none is lost, and no run stands still`, async () => {
    const random = seeded(SEED);
    const address = await server.namespace();
    await using rig = await Rig.setup();
    nameFleet(rig, server.urlFor(address));
    rig.write('a.meow.toml', WORKFLOW);
    let killed = 0;
    let powerFailures = 0;
    for (let round = 0; killed < KILLS; round++) {
      const ids = Array.from({ length: RUNS }, (_, run) => `r${round}-${run}`);
      for (const id of ids) {
        const { code, stderr } = await rig.meow('run', 'a.meow.toml', '--fleet', '--id', id);
        expect(stderr).toBe('');
        expect(code).toBe(0);
      }
      let live: Live = rig.start('worker');
      for (let kill = 0; kill < 8; kill++, killed++) {
        await sleep(random(50, 900));
        const chance = random(0, 100);
        if (chance < 25) {
          await server.halt();
          await sleep(random(0, 20) < 4 ? 3_000 : random(0, 300));
          await server.start();
        } else if (chance < 75) {
          live.kill('SIGKILL');
          await live.ended;
          live = rig.start('worker');
        } else {
          powerFailures += 1;
          await rig.killAll();
          await live.ended;
          live = rig.start('worker');
        }
      }
      await ended(address, ids, live);
      live.kill('SIGTERM');
      await live.ended;
    }
    await check(address, rig, powerFailures);
  }, 900_000);

  async function ended(address: FleetAddress, ids: readonly string[], live: Live): Promise<void> {
    const store = postgresStore({ address, owner: { id: 'reader', kind: 'client', hostId: 'test' } });
    const deadline = Date.now() + 180_000;
    for (const id of ids) {
      for (;;) {
        const last = (await store.read(id)).records.at(-1);
        if (last?.decisions.some(({ kind }) => kind === 'run-ended')) break;
        if (Date.now() > deadline) throw new Error(`run ${id} stands still:\n${live.printed}\n${JSON.stringify(last)}`);
        await sleep(50);
      }
    }
    await store.close();
  }

  async function check(address: FleetAddress, rig: Rig, powerFailures: number): Promise<void> {
    const store = postgresStore({ address, owner: { id: 'reader', kind: 'client', hostId: 'test' } });
    const begins = readFileSync(join(rig.folder, 'begun'), 'utf8').trim().split('\n');
    expect(begins.toSorted()).toEqual([...new Set(begins)].toSorted());
    let repeated = 0;
    for (const { id } of await store.list()) {
      const { program, records } = await store.read(id);
      const state = initialState(program);
      const done = new Set<string>();
      const started = new Set<string>();
      for (const { input, at, decisions } of records) {
        // It decides the same again.
        expect(JSON.parse(JSON.stringify(decide(state, input, at)))).toEqual(decisions);
        for (const decision of decisions) {
          if (decision.kind === 'step-done') done.add(decision.step);
          if (decision.kind !== 'step-started') continue;
          expect(done.has(decision.step)).toBe(false);
          const attempt = `${decision.step} ${decision.attempt}`;
          expect(started.has(attempt)).toBe(false);
          started.add(attempt);
          if (decision.attempt > 1 && decision.step !== 'flaky') repeated += 1;
        }
      }
      expect([id, state.end]).toEqual([id, 'done']);
      const mine = begins.filter((line) => line.startsWith(`${id} `)).map((line) => line.slice(id.length + 1));
      expect(mine.filter((attempt) => !started.has(attempt))).toEqual([]);
    }
    // Only what died with the machine.
    if (powerFailures === 0) expect(repeated).toBe(0);
    await store.close();
  }
});

/** Uniform between two numbers (mulberry32). */
function seeded(seed: number): (from: number, to: number) => number {
  let state = seed;
  return (from, to) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return from + (((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * (to - from);
  };
}
