// What the keys of `meow top` do outside of its screen: decide a gate, page the output of a step, attach to a terminal, and
// explain a run. All take the paths of the commands of the same name.

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { StringDecoder } from 'node:string_decoder';
import { stripVTControlCharacters } from 'node:util';

import { messageOf } from '../app/agent-requests.ts';
import { decideGate } from '../app/decide-gate.ts';
import { pageAddress, runPath } from '../app/page-address.ts';
import type { NamedProject } from '../app/projects.ts';
import { agentTerminal } from '../app/run-agents.ts';
import { readRun, storeOf } from '../app/runs.ts';
import { shownRun } from '../app/shown-run.ts';
import { readSettings } from '../app/sources.ts';
import { userName } from '../app/user-name.ts';
import { UsageError } from '../base/errors.ts';
import { visibleControls } from '../base/sanitize.ts';
import { isErrno } from '../sys/errors.ts';
import { mainOutput, mainStep } from '../view/cause.ts';
import type { FleetAgent, FleetNeed } from '../view/fleet.ts';
import { verdictText } from '../view/status.ts';
import { whyView } from '../view/why.ts';
import { openInBrowser } from './open-browser.ts';

/** A run, and the project that it is in. */
export interface PlacedRun {
  readonly project: NamedProject;
  readonly id: string;
}

export type Verdict =
  | { readonly kind: 'approve' }
  | { readonly kind: 'reject' }
  | { readonly kind: 'answer'; readonly text: string };

/** What happens next, or why it was refused. */
export async function decide({ project, id }: PlacedRun, gate: string, verdict: Verdict): Promise<string> {
  const { config } = readSettings(project);
  const answer = verdict.kind === 'answer' ? verdict.text : null;
  const decided = { approved: verdict.kind !== 'reject', notes: null, answer, by: userName() };
  const reply = await decideGate(storeOf(project), id, gate, decided, { config, isNamed: false });
  if (reply.kind !== 'ack') throw new UsageError(messageOf(reply));
  return reply.note ?? `sent; the engine of run ${id} has not recorded it yet`;
}

/** `approved by ann`; null if the journal has no verdict. */
export async function recordedVerdict({ project, id }: PlacedRun, gate: string): Promise<string | null> {
  const { state } = await readRun(storeOf(project), id);
  const verdict = state.gates.get(gate)?.verdict ?? null;
  return verdict === null ? null : verdictText(verdict);
}

/** Opens the page of the run. Says what follows. */
export function openPage({ project, id }: PlacedRun, failed: (message: string) => void): string {
  const url = pageAddress(runPath(project.name, id));
  if (url === null) return 'no page is served now; serve it in another terminal: meow ui';
  openInBrowser(url, failed);
  return 'opened in the browser';
}

/** Why the step that matters most has its status. */
export async function whyLines({ project, id }: PlacedRun): Promise<readonly string[]> {
  const store = storeOf(project);
  const { state, interrupted } = await shownRun(store, await readRun(store, id), project);
  const step = mainStep(state);
  const view = step === null ? null : whyView(state, step.id, interrupted);
  if (view === null) throw new UsageError(`run ${id} has no steps`);
  return [`${view.step} is ${view.status}.`, ...view.because.map((sentence) => `  ${sentence}`)];
}

/** Shows the output of the step that runs, failed, or ended last in the user's pager. */
export async function pageOutput({ project, id }: PlacedRun): Promise<void> {
  const { state } = await readRun(storeOf(project), id);
  const step = mainOutput(state);
  if (step === null) throw new UsageError(`run ${id} has no output yet`);
  const args = [join(import.meta.dirname, 'meow.cjs'), 'logs', id, '--', step.id];
  const logs = spawn(process.execPath, args, { cwd: project.cwd, stdio: ['ignore', 'pipe', 'ignore'] });
  const pager = spawn('/bin/sh', ['-c', PAGER], { cwd: project.cwd, stdio: ['pipe', 'inherit', 'inherit'] });
  const closed = new Promise<void>((resolve) => pager.once('close', () => resolve()));
  try {
    await pipeline(logs.stdout, asText(), pager.stdin);
  } catch (error) {
    // The person has left the pager before the end.
    if (!isErrno(error, 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_DESTROYED')) throw error;
  }
  await closed;
  logs.kill();
}

/** A pager that is not named is `less`, at the end; else `more`. */
const PAGER = 'if [ -n "$PAGER" ]; then eval "$PAGER"; elif command -v less >/dev/null; then less +G; else more; fi';

/** A pager may obey control characters; here they are text. */
function asText(): Transform {
  const decoder = new StringDecoder('utf8');
  const shown = (text: string): string => visibleControls(stripVTControlCharacters(text));
  return new Transform({
    transform: (bytes: Buffer, _encoding, done) => done(null, shown(decoder.write(bytes))),
    flush: (done) => done(null, shown(decoder.end())),
  });
}

/** Attaches this terminal to that of the agent. Resolves when the person detaches. */
export async function attachTo({ project, id }: PlacedRun, agents: readonly FleetAgent[]): Promise<void> {
  const [agent] = agents.toSorted((a, b) => rankOf(a) - rankOf(b));
  if (agent === undefined) throw new UsageError(`run ${id} has no agent at work`);
  const { command } = await agentTerminal(project, await readRun(storeOf(project), id), agent.id, false);
  if (command === null) throw new UsageError(`the terminal of agent ${agent.id} is gone`);
  const { program, args, environment } = command;
  const child = spawn(program, args, { stdio: 'inherit', env: environment });
  await new Promise<void>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', () => resolve());
  });
}

const RANKS: readonly FleetAgent['shown'][] = ['waiting', 'active', 'starting', 'parked', 'idle'];

function rankOf({ shown }: FleetAgent): number {
  const rank = RANKS.indexOf(shown);
  return rank < 0 ? RANKS.length : rank;
}

/** What a decision about it is called: an agent is allowed to do something, a gate is approved. */
export function decisionWord({ kind }: FleetNeed, approved: boolean): string {
  if (kind === 'dialog') return approved ? 'allow' : 'deny';
  return approved ? 'approve' : 'reject';
}
