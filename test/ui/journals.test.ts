// For random journals of the simulator, the page shows at every record what `meow status --json` says of a run that has come so
// far: the same steps, counts, gates and costs. The slider at record n is a fold of n records.

import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';

import { below, randomFrom } from '../../src/base/random.ts';
import type { Program } from '../../src/ir/program.ts';
import type { Decision, JournalRecord } from '../../src/kernel/decision.ts';
import { fold } from '../../src/kernel/apply.ts';
import { fileStore } from '../../src/stores/files.ts';
import { hashProgram } from '../../src/stores/journal-lines.ts';
import { statusView } from '../../src/view/status.ts';
import { pictureOf, same, shownStatus, sortedEntries } from '../rig/run-picture.ts';
import { attempts } from '../rig/sample.ts';
import { Stage } from '../rig/stage.ts';
import { randomProgram } from '../simulation/random-program.ts';
import { CALM, live } from '../simulation/simulate.ts';
import { World } from '../simulation/world.ts';

const RUNS = attempts(10);
/** As many rows are in the document at most. */
const STEPS_MAX = 140;
const RECORDS = { least: 12, most: 90 };

/** Opens every group. A row is opened by a key, so that no step is chosen. */
const OPEN_GROUPS = `setInterval(() => {
  for (const row of document.querySelectorAll('[role=row][aria-expanded=false]')) {
    row.focus();
    row.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
  }
}, 10)`;

const READ_GATES = `[...document.querySelectorAll('article[data-gate]')].map((each) => each.dataset.gate + ' ' + each.dataset.status)`;

test(`${RUNS} random runs are shown as status shows them, at every record`, async () => {
  await using stage = await Stage.open();
  const { rig } = stage;
  rig.write('.meow/config.toml', '');
  const store = fileStore({ folder: rig.path('.meow/workflows') });
  const page = await stage.tab('/');
  await page.setViewportSize({ width: 1200, height: 5_000 });
  const seen = { gates: 0, costs: 0, failed: 0 };
  let count = 0;
  for (let seed = 1; count < RUNS; seed++) {
    const id = `sim-${seed}`;
    const { program, records } = await simulated(seed, id);
    if (!isSuitable(program, records, count)) continue;
    count += 1;
    const journal = await store.create(id, program);
    await journal.append(records);
    await journal.close();
    await page.goto(`${stage.ui.origin}/p/project/r/${id}/timeline?at=1`);
    await page.evaluate(OPEN_GROUPS);
    for (let seq = 1; seq <= records.length; seq++) {
      const state = fold(program, records.slice(0, seq));
      const view = statusView(state);
      const steps = Object.entries(view.steps).map(([step, { status }]) => `${step} ${shownStatus(status)}`);
      const shown = await pictureOf(
        page,
        (picture) =>
          picture.record === seq &&
          picture.rowCount >= steps.length &&
          same(picture.rows.map(([step, status]) => `${step} ${shownStatus(status)}`).toSorted(), steps.toSorted()),
      );
      expect(sortedEntries(shown.counts ?? {}), `${id} at ${seq}`).toEqual(sortedEntries(view.counts));
      expect(shown.records).toBe(records.length);
      // With a turn of unknown price status says nothing about the sum, and the page says that it is at least so much.
      const { usd, tokens, unpriced } = state.cost;
      expect(view.cost.unknown_turns).toBe(unpriced);
      if (unpriced === 0) expect(view.cost.usd).toBe(usd);
      const nothing = usd === 0 && tokens === 0 && unpriced === 0;
      expect(shown.spent, `${id} at ${seq}`).toEqual(
        nothing ? null : expect.stringMatching(unpriced > 0 ? /^≥ / : /^\$/),
      );
      if (shown.spent !== null) expect(Number(shown.spent.replaceAll(/[^\d.]/g, ''))).toBeCloseTo(usd, 2);
      if (!nothing) seen.costs += 1;
      if (view.counts.failed > 0) seen.failed += 1;
      if (view.gates.length > 0) seen.gates += 1;
      if (seq < records.length) await showNext(page, seq);
    }
    const told = await rig.status(id);
    const last = await pictureOf(page, ({ record }) => record === records.length);
    expect(last.status).toBe(told.status);
    expect(sortedEntries(last.counts ?? {})).toEqual(sortedEntries(told.counts));
    // From the end, and only some: the gates of a record do not depend on the way to it.
    for (const seq of [records.length, 1, Math.ceil(records.length / 2), Math.ceil(records.length / 3)]) {
      await page.goto(`${stage.ui.origin}/p/project/r/${id}/gates?at=${seq}`);
      const { gates } = statusView(fold(program, records.slice(0, seq)));
      const wanted = gates.map((gate) => `${gate.id} ${gate.status}`).toSorted();
      const shown = async (): Promise<readonly string[]> => (await page.evaluate<string[]>(READ_GATES)).toSorted();
      await expect.poll(shown).toEqual(wanted);
    }
  }
  expect(Object.entries(seen).filter(([, times]) => times === 0)).toEqual([]);
});

/** A page that was just opened may not listen to keys yet. */
async function showNext(page: Page, shown: number): Promise<void> {
  const isPassed = `Number(document.querySelector('[role=slider]').getAttribute('aria-valuenow')) > ${shown}`;
  const passed = async (): Promise<boolean> => {
    for (const end = Date.now() + 5_000; Date.now() < end; ) if (await page.evaluate<boolean>(isPassed)) return true;
    return false;
  };
  do await page.keyboard.press(']');
  while (!(await passed()));
}

/** Half of them are machines, whose turns cost something; the others are graphs, which have gates. */
function isSuitable(program: Program, records: readonly JournalRecord[], count: number): boolean {
  if (records.length < RECORDS.least || records.length > RECORDS.most) return false;
  const { steps, cost } = fold(program, records);
  return steps.size <= STEPS_MAX && (count % 2 === 0 ? cost.usd > 0 : records.some(hasGate));
}

function hasGate({ decisions }: JournalRecord): boolean {
  return decisions.some(({ kind }) => kind === 'gate-decided');
}

/** As the store of a run would have it. */
async function simulated(
  seed: number,
  id: string,
): Promise<{ readonly program: Program; readonly records: readonly JournalRecord[] }> {
  const random = randomFrom(seed);
  const program = randomProgram(random);
  const roughness = below(random, 2) === 0 ? CALM : { crash: 0.04, reboot: 0.3, twice: 0.2 };
  const world = new World(program, randomFrom(seed + 1), roughness);
  await live(world, random, { meddle: 0, problems: [] });
  const hash = hashProgram(program);
  const named = (decision: Decision): Decision =>
    decision.kind === 'run-started'
      ? { ...decision, programHash: hash, request: { ...decision.request, id } }
      : decision;
  const records = world.records.map(({ input, decisions, ...record }) => ({
    ...record,
    input: input.kind === 'run-requested' ? { ...input, programHash: hash } : input,
    decisions: decisions.map(named),
  }));
  return { program, records };
}
