// `meow status`: show a run's status.

import { relative } from 'node:path';

import { chosenStore, type StoreChoice } from '../../app/choose-store.ts';
import { follow, type FollowedRun } from '../../app/follow.ts';
import type { RunState } from '../../app/observer.ts';
import { findProject } from '../../app/project.ts';
import { agentsLeft } from '../../app/run-agents.ts';
import { shownRun, type ShownRun } from '../../app/shown-run.ts';
import { latestRun, readRun, refusedMessagesOf, resolveRun, type Store } from '../../app/runs.ts';
import { describeWorkspace, workspaceOf } from '../../app/workspace.ts';
import { crash } from '../../sys/errors.ts';
import type { Palette } from '../../view/row.ts';
import { statusView } from '../../view/status.ts';
import { summaryLines } from '../../view/summary.ts';
import { treeLines } from '../../view/tree-lines.ts';
import type { Switches } from '../flags.ts';
import { EXIT, isOutputClosed, printJson, printLines, printResult } from '../output.ts';
import { Redraw } from '../redraw.ts';
import { GateWork, isAscii, moves } from '../reporters.ts';
import { canRedraw, lineWidth, paletteFor } from '../terminal.ts';

type StatusOptions = Switches<'json' | 'watch'> & StoreChoice;

export async function status(wanted: string | undefined, { json, watch, fleet }: StatusOptions): Promise<number> {
  const store = await chosenStore({ fleet });
  const id = wanted === undefined ? await latestRun(store) : await resolveRun(store, wanted);
  if (!watch) {
    const run = await readRun(store, id);
    if (json) return printResult(await statusObject(store, run));
    printLines(await statusLines(store, run));
  } else if (!json && canRedraw(process.stdout)) await watchAsTree(store, id);
  else {
    const show = async (run: FollowedRun): Promise<boolean> => {
      const isOver = run.state.phase === 'ended';
      if (json) printJson(await statusObject(store, run));
      else printLines([...(await statusLines(store, run)), ...(isOver ? [] : [''])]);
      return !isOver;
    };
    await follow(store, id, show, isOutputClosed);
  }
  return EXIT.done;
}

async function statusObject(store: Store, run: FollowedRun): Promise<object> {
  const { engine, interrupted } = await shownRun(store, run);
  const view = statusView(run.state, { id: run.id });
  const agents = engine === null && store.isShared === undefined ? await agentsLeft(store, run) : view.agents;
  return { ...view, agents, workspace: await workspaceOf(run.state), engine, interrupted };
}

async function statusLines(store: Store, run: FollowedRun): Promise<readonly string[]> {
  const palette = paletteFor(process.stdout);
  const size = { width: lineWidth(process.stdout), height: Infinity };
  const { id, state, now, interrupted } = await shownRun(store, run);
  const where = store.isShared === undefined ? null : await whereText(id);
  const cure = where ?? undefined;
  const lines = [...treeLines(state, { ...size, now, interrupted, cure, palette, ascii: isAscii(), closing: true })];
  if (where === null) lines.push(...(store.isShared === undefined ? refusedLines(store, id) : []));
  else if (!interrupted) lines.push(where);
  return [...lines, ...summaryLines(state, palette, await workOf(state, palette)).slice(1)];
}

/** Messages that the run refused and whose sender did not wait for the answer. */
function refusedLines(store: Store, id: string): readonly string[] {
  const { folder, count } = refusedMessagesOf(store, id);
  const messages = count === 1 ? '1 refused message is' : `${count} refused messages are`;
  return count === 0 ? [] : [`${messages} in ${relative(process.cwd(), folder)}`];
}

async function whereText(id: string): Promise<string | null> {
  const { whereText: read } = await import('../../app/fleet-status.ts');
  return read(id);
}

function workOf(state: RunState, palette: Palette): Promise<readonly string[]> {
  return describeWorkspace(state, palette, findProject().cwd);
}

const LOOK_MS = 1_000;

async function watchAsTree(store: Store, id: string): Promise<void> {
  const palette = paletteFor(process.stdout);
  let shown: ShownRun | null = null;
  const work = new GateWork(workOf, () => redraw.changed());
  const lines = (size: { readonly width: number; readonly height: number }, closing = false): readonly string[] => {
    if (shown === null) return [];
    const now = shown.interrupted ? shown.now : Date.now();
    return treeLines(shown.state, {
      ...size,
      now,
      interrupted: shown.interrupted,
      palette,
      ascii: isAscii(),
      closing,
      work: closing ? [] : work.lines,
    });
  };
  const isMoving = (): boolean => shown !== null && !shown.interrupted && moves(shown.state);
  const redraw = new Redraw({ lines, moves: isMoving, settled: () => true }, process.stdout);
  const show = async (run: FollowedRun): Promise<void> => {
    shown = await shownRun(store, run);
    work.refresh(shown.state);
    redraw.changed();
  };
  // An engine that dies leaves no record.
  const looking = setInterval(() => void (shown === null ? null : show(shown).catch(crash)), LOOK_MS);
  const leave = (): void => {
    redraw.close(null);
    process.exit(130);
  };
  process.once('SIGINT', leave);
  try {
    let last: RunState | null = null;
    const seen = async (run: FollowedRun): Promise<boolean> => {
      last = run.state;
      await show(run);
      return run.state.phase !== 'ended';
    };
    await follow(store, id, seen, isOutputClosed);
    if (last !== null) {
      redraw.close(lines({ width: lineWidth(process.stdout), height: Infinity }, true));
      printLines(summaryLines(last, palette, await workOf(last, palette)).slice(1));
    }
  } finally {
    clearInterval(looking);
    process.off('SIGINT', leave);
    redraw.close(null);
  }
}
