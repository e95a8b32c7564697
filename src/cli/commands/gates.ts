// `meow gates`: the decisions that runs of this project wait for.

import { formatDuration } from '../../base/time.ts';
import type { FileStore } from '../../stores/files.ts';
import { padTo, tame, widthOf } from '../../view/row.ts';
import type { GateView } from '../../view/status.ts';
import { openGates } from '../../view/status.ts';
import { EXIT } from '../exit.ts';
import { findProject } from '../project.ts';
import { readRun, resolveRun, storeOf } from '../runs.ts';
import { complain, say } from '../say.ts';

interface OpenGate extends GateView {
  readonly workflow: string;
}

export async function gates(options: { readonly workflow?: string; readonly json?: true }): Promise<number> {
  const store = storeOf(findProject());
  const ids =
    options.workflow === undefined
      ? (await store.list()).map(({ id }) => id)
      : [await resolveRun(store, options.workflow)];
  const open: OpenGate[] = [];
  for (const id of ids) {
    if (!(await goesOn(store, id))) continue;
    const { state } = await readRun(store, id);
    open.push(...openGates(state).map((gate) => ({ workflow: id, ...gate })));
  }
  if (options.json) {
    say(JSON.stringify(open, null, 2));
    return EXIT.done;
  }
  for (const line of table(open)) say(line);
  complain(
    open.length === 0
      ? 'no gate is open'
      : '  decide: meow approve RUN GATE · meow reject RUN GATE --reason TEXT · meow answer RUN GATE TEXT',
  );
  return EXIT.done;
}

/** Without reading all of a journal whose end says that it is over for good. */
async function goesOn(store: FileStore, id: string): Promise<boolean> {
  const last = await store.lastRecord(id);
  if (last === null) return false;
  return !last.decisions.some((made) => made.kind === 'run-ended' && (made.end === 'done' || made.end === 'failed'));
}

function table(open: readonly OpenGate[]): readonly string[] {
  if (open.length === 0) return [];
  const rows = open.map(({ workflow, id, step, opened_at: openedAt, prompt }) => [
    workflow,
    tame(id),
    tame(step ?? ''),
    openedAt === null ? '' : formatDuration(Date.now() - Date.parse(openedAt)),
    tame(prompt ?? ''),
  ]);
  const head = ['RUN', 'GATE', 'STEP', 'WAITS', 'PROMPT'];
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((cells) => widthOf(cells[column] ?? ''))));
  return [head, ...rows].map((cells) =>
    cells
      .map((cell, column) => padTo(cell, widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
