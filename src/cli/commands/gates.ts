// `meow gates`: the decisions that runs of this project wait for, or have asked for and gone on without.

import { formatDuration } from '../../base/time.ts';
import { shorten, sanitize } from '../../view/sanitize.ts';
import type { GateView } from '../../view/status.ts';
import { openGates } from '../../view/status.ts';
import { inColumns } from '../terminal.ts';
import { EXIT } from '../exit.ts';
import { findProject } from '../../app/project.ts';
import { inEach, readRun, resolveRun, runsWithQuestions, storeOf } from '../../app/runs.ts';
import { warn, warnUnreadable, printLine } from '../output.ts';

interface OpenGate extends GateView {
  readonly workflow: string;
}

export async function gates(options: { readonly workflow?: string; readonly json?: true }): Promise<number> {
  const store = storeOf(findProject());
  const openIn = async (id: string): Promise<readonly OpenGate[]> =>
    openGates((await readRun(store, id)).state).map((gate) => ({ workflow: id, ...gate }));
  const open =
    options.workflow === undefined
      ? await inEach(await runsWithQuestions(store), openIn, warnUnreadable)
      : await openIn(await resolveRun(store, options.workflow));
  if (options.json) {
    printLine(JSON.stringify(open, null, 2));
    return EXIT.done;
  }
  const rows = open.map(({ workflow, id, step, opened_at: openedAt, prompt }) => [
    workflow,
    sanitize(id),
    shorten(step ?? ''),
    openedAt === null ? '' : formatDuration(Date.now() - Date.parse(openedAt)),
    sanitize((prompt ?? '').trim().split('\n')[0] ?? ''),
  ]);
  for (const line of inColumns(['RUN', 'GATE', 'STEP', 'WAITS', 'PROMPT'], rows)) printLine(line);
  // What an agent asks is a screen, and a line of it tells little.
  for (const { workflow, id, prompt } of open.filter((gate) => gate.prompt?.trim().includes('\n'))) {
    printLine('');
    printLine(`${workflow} ${sanitize(id)}:`);
    for (const line of (prompt ?? '').trim().split('\n')) printLine(`  ${sanitize(line)}`.trimEnd());
  }
  warn(
    open.length === 0
      ? 'no gate is open'
      : '  decide: meow approve RUN GATE · meow reject RUN GATE --reason TEXT · meow answer RUN GATE TEXT',
  );
  return EXIT.done;
}
