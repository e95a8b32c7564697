// The Outcome of a finished turn. The reader of its output decides about success (agent/readers/reader.ts); without a
// result the exit code says how it failed, never that it succeeded.

import type { RunFiles } from '../../../engine/ports.ts';
import { join } from 'node:path';
import { formatDuration } from '../../../base/time.ts';
import type { Json } from '../../../base/json.ts';
import type { Adapter } from '../../../ir/adapter.ts';
import { success } from '../../../ir/effect.ts';
import type { Outcome } from '../../../ir/effect.ts';
import { failure } from '../../../ir/failure.ts';
import type { Failure, FailureKind } from '../../../ir/failure.ts';
import type { Capture } from '../../../ir/output.ts';
import type { FilledText } from '../../../ir/text.ts';
import { capture } from '../../capture-outputs.ts';
import type { Captured } from '../../capture-outputs.ts';
import type { StepFolder } from '../../step-folder.ts';
import { writePrivate } from '../../../sys/private-file.ts';
import { endedWith } from '../../command-outcome.ts';
import { limitIn } from './limit.ts';
import type { ToldLimit } from './limit.ts';
import type { OverTurn, TurnEnd } from './turn.ts';

export interface TurnContext {
  readonly files: RunFiles;
  readonly folder: StepFolder;
  readonly adapter: Adapter;
  readonly idleMs: number | null;
}

/** Outputs of a success: `result`, `session_id`, `denied`, and `structured` if there is such an answer. */
export async function turnOutcome(end: TurnEnd, context: TurnContext): Promise<Outcome> {
  if (end.kind === 'refused') return failed('not-started', `the agent could not be started: ${end.reason}`);
  const { reading, session, usage } = end;
  const { verdict } = reading;
  if (end.how !== 'ended' || verdict.kind !== 'answer') return failureOf(end, context);
  const { outputs, kept, problems } = await answerOf(verdict.text, verdict.structured, context);
  const [problem] = problems;
  if (problem !== undefined) return failed(problem.kind, problem.message, { session, usage });
  return success({ ...outputs, session_id: session, denied: reading.denied }, { kept, session, usage });
}

function failureOf(end: OverTurn, { adapter, idleMs }: TurnContext): Outcome {
  const { reading, session, usage, status, left, stderr, text } = end;
  // A program's output after our signal is not the reason for the signal.
  const [first, second] = end.how === 'ended' ? [stderr, text] : [text, stderr];
  const output = lastOf(first) ?? lastOf(second);
  const fail = (kind: FailureKind, message: string, more: Partial<Failure> = {}): Outcome =>
    failed(kind, `${message}${named(left)}`, { code: status, output, session, usage, ...more });
  switch (end.how) {
    case 'stopped':
      return fail('stopped', 'the agent was stopped');
    case 'idle':
      return fail('idle', `the agent gave no sign of life for ${formatDuration(idleMs ?? 0)}`);
    case 'lost':
      return fail('lost', LOST);
    case 'ended': {
      const { verdict } = reading;
      const limit = limitOf(end, adapter);
      if (limit !== null) {
        const message = `the agent has reached a usage limit: ${limit.text}`;
        return fail('limit-reached', message, { retryAt: limit.until });
      }
      if (verdict.kind === 'error') return fail('exit-nonzero', `the agent failed: ${short(verdict.message)}`);
      if (status === 0 || status === null) return fail('output-missing', 'the agent ended without an answer');
      return fail(status > 128 ? 'signal' : 'exit-nonzero', `the agent ${endedWith(status)}`);
    }
  }
}

/** The limit that ended it, from its reader or the adapter's patterns; null if none. */
export function limitOf(end: OverTurn, { limits }: Adapter): ToldLimit | null {
  const { how, reading, stderr, text, at } = end;
  const { verdict } = reading;
  if (how !== 'ended' || verdict.kind === 'answer') return null;
  const said = verdict.kind === 'error' ? verdict.message : '';
  const told = limitIn([said, stderr, text].join('\n'), limits, at);
  const limit = verdict.kind === 'error' ? verdict.limit : null;
  if (told === null && limit === null) return null;
  return { text: told?.text ?? short(said), until: limit?.until ?? told?.until ?? null };
}

const LOST = 'the agent was started by an earlier engine, and is gone without an exit status';

/** Larger values are stored in a file (drivers/capture-outputs.ts). */
const LOADED_BYTES_MAX = 1_000_000;

async function answerOf(text: string | null, structured: Json, context: TurnContext): Promise<Captured> {
  const { files, folder } = context;
  const left = { files, folder, cwd: folder.path, status: 0 };
  const result: Capture<FilledText> = { name: 'result', from: { kind: 'stdout' }, type: 'string', required: true };
  const parts = [text === null ? await capture([result], left) : await kept('result', text, text, context)];
  if (structured !== null) parts.push(await kept('structured', structured, JSON.stringify(structured), context));
  return {
    outputs: Object.assign({}, ...parts.map(({ outputs }) => outputs)) as Captured['outputs'],
    kept: parts.flatMap((part) => part.kept),
    problems: parts.flatMap(({ problems }) => problems),
  };
}

/** `written`: its form in a file. */
async function kept(name: string, value: Json, written: string, { files, folder }: TurnContext): Promise<Captured> {
  if (Buffer.byteLength(written) <= LOADED_BYTES_MAX) return { outputs: { [name]: value }, kept: [], problems: [] };
  const path = join(folder.path, name);
  writePrivate(path, written);
  const type = typeof value === 'string' ? 'string' : 'json';
  const from = { kind: 'file', path } as const;
  return capture([{ name, from, type, required: true }], { files, folder, cwd: folder.path, status: 0 });
}

function named(left: readonly number[]): string {
  return left.length === 0 ? '' : `; these processes could not be killed: ${left.join(', ')}`;
}

const MESSAGE_MAX = 1_000;
const TAIL_MAX = 4_096;

function short(text: string): string {
  return text.length <= MESSAGE_MAX ? text : `${text.slice(0, MESSAGE_MAX)}…`;
}

function lastOf(text: string): string | null {
  const last = text.slice(-TAIL_MAX).trim();
  return last === '' ? null : last;
}

function failed(kind: FailureKind, message: string, more: Partial<Failure> = {}): Outcome {
  return { kind: 'failure', failure: failure(kind, message, more) };
}
