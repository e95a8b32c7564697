// `meow status`: show a run's status.

import { relative } from 'node:path';
import type { RunState } from '../../app/observer.ts';
import { summaryLines } from '../../view/summary-lines.ts';
import { statusView } from '../../view/status.ts';
import { treeLines } from '../../view/tree-lines.ts';
import { agentsLeft } from '../../app/agent-liveness.ts';
import { canRedraw, lineWidth, paletteFor } from '../terminal.ts';
import { EXIT } from '../exit.ts';
import type { FollowedRun } from '../../app/follow.ts';
import { follow } from '../../app/follow.ts';
import { findProject } from '../../app/project.ts';
import { Redraw } from '../redraw.ts';
import { isAscii, moves } from '../reporters/tree.ts';
import type { Store } from '../../app/runs.ts';
import { latestRun, readRun, refusedMessagesOf, resolveRun, storeOf } from '../../app/runs.ts';
import { isOutputClosed, printLine, printJson } from '../output.ts';

export interface StatusOptions {
  readonly json?: true;
  readonly watch?: true;
}

export async function status(wanted: string | null, { json, watch }: StatusOptions): Promise<number> {
  const store = storeOf(findProject());
  const id = wanted === null ? await latestRun(store) : await resolveRun(store, wanted);
  if (!watch) {
    const run = await readRun(store, id);
    if (json) printLine(JSON.stringify(await statusObject(store, run), null, 2));
    else for (const line of await statusLines(store, run)) printLine(line);
    return EXIT.done;
  }
  if (json) await watchAsJson(store, id);
  else if (canRedraw(process.stdout)) await watchAsTree(store, id);
  else await watchAsLines(store, id);
  return EXIT.done;
}

/** The object of `status --json`. */
export async function statusObject(store: Store, run: FollowedRun): Promise<object> {
  const holder = await store.holder(run.id);
  const view = statusView(run.state, { id: run.id });
  if (holder === null) return { ...view, agents: await agentsLeft(store, run), engine: null };
  return { ...view, engine: { pid: holder.pid } };
}

async function statusLines(store: Store, { id, state }: FollowedRun): Promise<readonly string[]> {
  const palette = paletteFor(process.stdout);
  const width = lineWidth(process.stdout);
  const now = Date.now();
  const picture = treeLines(state, { now, width, height: Infinity, palette, ascii: isAscii(), closing: true });
  return [
    ...picture,
    ...(await abandoned(store, id, state)),
    ...refused(store, id),
    ...summaryLines(state, palette).slice(1),
  ];
}

/** Messages that the run refused and whose sender did not wait for the answer. */
function refused(store: Store, id: string): readonly string[] {
  const { folder, count } = refusedMessagesOf(store, id);
  if (count === 0) return [];
  return [
    `${count === 1 ? '1 refused message is' : `${count} refused messages are`} in ${relative(process.cwd(), folder)}`,
  ];
}

/** The run has not ended, and no engine works on it. */
async function abandoned(store: Store, id: string, state: RunState): Promise<readonly string[]> {
  if (state.phase === 'ended' || (await store.holder(id)) !== null) return [];
  return [`the run has no engine; resume it: meow resume ${id}`];
}

async function watchAsJson(store: Store, id: string): Promise<void> {
  await follow(
    store,
    id,
    async (run) => {
      printJson(await statusObject(store, run));
      return run.state.phase !== 'ended';
    },
    isOutputClosed,
  );
}

async function watchAsLines(store: Store, id: string): Promise<void> {
  await follow(
    store,
    id,
    async (run) => {
      for (const line of await statusLines(store, run)) printLine(line);
      if (run.state.phase === 'ended') return false;
      printLine();
      return true;
    },
    isOutputClosed,
  );
}

async function watchAsTree(store: Store, id: string): Promise<void> {
  const palette = paletteFor(process.stdout);
  let shown: RunState | null = null;
  const lines = (size: { readonly width: number; readonly height: number }, closing = false): readonly string[] =>
    shown === null ? [] : treeLines(shown, { ...size, now: Date.now(), palette, ascii: isAscii(), closing });
  const redraw = new Redraw(
    { lines, moves: () => shown !== null && moves(shown), settled: () => true },
    process.stdout,
  );
  const leave = (): void => {
    redraw.close(null);
    process.exit(130);
  };
  process.once('SIGINT', leave);
  try {
    await follow(
      store,
      id,
      ({ state }) => {
        shown = state;
        redraw.changed();
        return state.phase !== 'ended';
      },
      isOutputClosed,
    );
    if (shown !== null) {
      redraw.close(lines({ width: lineWidth(process.stdout), height: Infinity }, true));
      for (const line of summaryLines(shown, palette).slice(1)) printLine(line);
    }
  } finally {
    process.off('SIGINT', leave);
    redraw.close(null);
  }
}
