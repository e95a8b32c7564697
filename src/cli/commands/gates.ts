// `meow gates`, `approve`, `reject` and `answer`: the decisions that runs of this project wait for.

import { messageOf } from '../../app/agent-requests.ts';
import { decideGate, type GateVerdict, storeForDecision, verbOf } from '../../app/decide-gate.ts';
import { chooseGate, requireQuestion } from '../../app/gate-choice.ts';
import { findProject } from '../../app/project.ts';
import { inEach, readRun, resolveRun, runsWithQuestions, storeOf } from '../../app/runs.ts';
import { shownRun } from '../../app/shown-run.ts';
import { readSettings } from '../../app/sources.ts';
import { userName } from '../../app/user-name.ts';
import { describeWorkspace } from '../../app/workspace.ts';
import { sanitize, shorten } from '../../base/sanitize.ts';
import { formatDuration } from '../../base/time.ts';
import { type GateView, openGates } from '../../view/status.ts';
import { timeSince } from '../../view/usage.ts';
import type { RunChoice, Switches } from '../flags.ts';
import { EXIT, printLine, printLines, printResult, warn, warnUnreadable } from '../output.ts';
import { inColumns, paletteFor } from '../terminal.ts';

export async function gates(options: RunChoice & Switches<'json'>): Promise<number> {
  const project = findProject();
  const store = storeOf(project);
  const run = options.run ?? options.workflow;
  const waited = new Map<string, string>();
  const openIn = async (id: string): Promise<readonly OpenGate[]> => {
    const { state, interrupted, now } = await shownRun(store, await readRun(store, id));
    return openGates(state).map((gate) => {
      const openedAt = gate.opened_at === null ? null : Date.parse(gate.opened_at);
      const ms = openedAt === null ? null : timeSince(state, openedAt, now);
      waited.set(`${id} ${gate.id}`, ms === null ? '' : formatDuration(ms));
      return { workflow: id, ...gate, interrupted };
    });
  };
  const open =
    run === undefined
      ? await inEach(await runsWithQuestions(store), openIn, warnUnreadable)
      : await openIn(await resolveRun(store, run));
  if (options.json) return printResult(open);
  const hasApprovers = open.some(({ approvers }) => approvers !== null);
  const rows = open.map(({ workflow, id, step, approvers, prompt, interrupted }) => [
    workflow,
    sanitize(id),
    shorten(step ?? ''),
    `${waited.get(`${workflow} ${id}`) ?? ''}${interrupted ? ' (interrupted)' : ''}`,
    ...(hasApprovers ? [sanitize((approvers ?? ['any person']).join(', '))] : []),
    sanitize((prompt ?? '').trim().split('\n')[0] ?? ''),
  ]);
  const titles = ['RUN', 'GATE', 'STEP', 'WAITS', ...(hasApprovers ? ['APPROVERS'] : []), 'PROMPT'];
  printLines(inColumns(titles, rows));
  // What an agent asks is a screen, and a line of it tells little.
  for (const { workflow, id, prompt } of open.filter((gate) => gate.prompt?.trim().includes('\n'))) {
    printLine('');
    printLine(`${workflow} ${sanitize(id)}:`);
    for (const line of (prompt ?? '').trim().split('\n')) printLine(`  ${sanitize(line)}`.trimEnd());
  }
  for (const id of new Set(open.map(({ workflow }) => workflow))) {
    const { state } = await readRun(store, id);
    printLines(await describeWorkspace(state, paletteFor(process.stdout), project.cwd));
  }
  warn(
    open.length === 0
      ? 'no gate is open'
      : '  decide: meow approve RUN GATE · meow reject RUN GATE --reason TEXT · meow answer RUN GATE TEXT',
  );
  return EXIT.done;
}

interface OpenGate extends GateView {
  readonly workflow: string;
  /** Its run should be running, but has no engine. */
  readonly interrupted: boolean;
}

interface DeciderOptions {
  readonly as?: string;
  readonly sign?: string | true;
}

type Said = Omit<GateVerdict, 'by'>;
type Gate = string | undefined;

export function approve(id: string, gate: Gate, options: DeciderOptions & { notes?: string }): Promise<number> {
  return decide(id, gate, { approved: true, notes: options.notes ?? null, answer: null }, options);
}

export function reject(id: string, gate: Gate, options: DeciderOptions & { reason?: string }): Promise<number> {
  return decide(id, gate, { approved: false, notes: options.reason ?? null, answer: null }, options);
}

/** The only open gate if `second` is absent: the first argument is the text then. */
export function answer(
  id: string,
  first: string,
  second: string | undefined,
  options: DeciderOptions,
): Promise<number> {
  const [gate, text] = second === undefined ? [undefined, first] : [first, second];
  return decide(id, gate, { approved: true, notes: null, answer: text }, options);
}

async function decide(wanted: string, named: Gate, said: Said, options: DeciderOptions): Promise<number> {
  const project = findProject();
  const { as, sign } = options;
  const store = storeForDecision(project);
  const verdict = { ...said, by: as ?? userName() };
  const { config } = readSettings(project);
  const how = { config, isNamed: as !== undefined, ...(sign === undefined ? {} : { sign }) };
  const id = await resolveRun(store, wanted);
  const gate = await chooseGate(store, id, named);
  if (said.answer !== null) await requireQuestion(store, id, gate);
  const reply = await decideGate(store, id, gate, verdict, how);
  if (reply.kind === 'ack') {
    printLine(reply.note ?? `${gate} is ${verbOf(verdict)}`);
    return EXIT.done;
  }
  warn(`meow: ${messageOf(reply)}`);
  return EXIT.usage;
}
