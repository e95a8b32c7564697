// `meow approve`, `meow reject` and `meow answer`: decide a gate.

import { userInfo } from 'node:os';
import { messageOf } from '../../app/agent-requests.ts';
import { decideGate, verbOf } from '../../app/decide-gate.ts';
import type { GateVerdict } from '../../app/decide-gate.ts';
import { findProject } from '../../app/project.ts';
import { resolveRun, storeOf } from '../../app/runs.ts';
import { isErrno } from '../../sys/errno.ts';
import { EXIT } from '../exit.ts';
import { warn, printLine } from '../output.ts';

interface DecisionOptions {
  readonly notes?: string;
  readonly reason?: string;
  readonly as?: string;
}

export function approve(id: string, gate: string, { notes, as }: DecisionOptions): Promise<number> {
  return decide(id, gate, { approved: true, by: as ?? userName(), notes: notes ?? null, answer: null });
}

export function reject(id: string, gate: string, { reason, as }: DecisionOptions): Promise<number> {
  return decide(id, gate, { approved: false, by: as ?? userName(), notes: reason ?? null, answer: null });
}

/** `gate`: null means the only open one. */
export function answerGate(id: string, gate: string | null, text: string, { as }: DecisionOptions): Promise<number> {
  return decide(id, gate, { approved: true, by: as ?? userName(), notes: null, answer: text });
}

async function decide(wanted: string, gate: string | null, verdict: GateVerdict): Promise<number> {
  const store = storeOf(findProject());
  const answer = await decideGate(store, await resolveRun(store, wanted), gate, verdict);
  if (answer.kind === 'ack') {
    printLine(answer.note ?? `${gate ?? 'it'} is ${verbOf(verdict)}`);
    return EXIT.done;
  }
  warn(`meow: ${messageOf(answer)}`);
  return EXIT.usage;
}

function userName(): string {
  try {
    return userInfo().username;
  } catch (error) {
    // The system has no name for this user.
    if (isErrno(error, 'ENOENT')) return process.env['USER'] ?? 'somebody';
    throw error;
  }
}
