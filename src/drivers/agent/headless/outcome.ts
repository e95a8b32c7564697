// The Outcome of a finished turn. The reader of its output decides about success (agent/readers/reader.ts); without a
// result the exit code says how it failed, never that it succeeded.

import { dirname } from 'node:path';

import { formatDuration } from '../../../base/time.ts';
import type { RunFiles } from '../../../engine/ports.ts';
import type { Adapter } from '../../../ir/adapter.ts';
import { type Outcome, success } from '../../../ir/effect.ts';
import type { Failure, FailureKind } from '../../../ir/failure.ts';
import type { Capture } from '../../../ir/output.ts';
import type { FilledText } from '../../../ir/text.ts';
import type { Secrets } from '../../../sys/secrets.ts';
import { capture, captureValue, endedWith, failed } from '../../outputs.ts';
import type { AgentLimit } from '../host.ts';
import { limitIn } from './limit.ts';
import type { OverTurn, TurnEnd, TurnPlace } from './turn.ts';

export interface TurnContext extends Pick<TurnPlace, 'folder' | 'adapter' | 'idleMs'> {
  readonly files: RunFiles;
  readonly secrets?: Secrets | undefined;
}

/** Outputs of a success: `result`, `session_id`, `denied`, and `structured` if there is such an answer. */
export async function turnOutcome(end: TurnEnd, context: TurnContext): Promise<Outcome> {
  if (end.kind === 'refused') return failed('not-started', `the agent could not be started: ${end.reason}`);
  const { reading, session, usage } = end;
  const { verdict, denied } = reading;
  if (end.how !== 'ended' || verdict.kind !== 'answer') return failureOf(end, context);
  const { text, structured } = verdict;
  const { files, folder, secrets } = context;
  const result =
    text === null
      ? await capture([STDOUT], { files, folder, secrets, cwd: dirname(folder.prefix), status: 0 })
      : await captureValue('result', text, { files, folder, secrets });
  const more = structured === null ? null : await captureValue('structured', structured, { files, folder, secrets });
  const [problem] = [...result.problems, ...(more?.problems ?? [])];
  if (problem !== undefined) return failed(problem.kind, problem.message, { session, usage });
  const outputs = { ...result.outputs, ...more?.outputs, session_id: session, denied };
  return success(outputs, { kept: [...result.kept, ...(more?.kept ?? [])], session, usage });
}

const STDOUT: Capture<FilledText> = { name: 'result', from: { kind: 'stdout' }, type: 'string', required: true };

function failureOf(end: OverTurn, { adapter, idleMs }: TurnContext): Outcome {
  const { reading, session, usage, status, left, stderr, text } = end;
  // A program's output after our signal is not the reason for the signal.
  const [first, second] = end.how === 'ended' ? [stderr, text] : [text, stderr];
  const output = [first, second].map((each) => each.slice(-TAIL_MAX).trim()).find((each) => each !== '') ?? null;
  const survivors = left.length === 0 ? '' : `; these processes could not be killed: ${left.join(', ')}`;
  const fail = (kind: FailureKind, message: string, more: Partial<Failure> = {}): Outcome =>
    failed(kind, `${message}${survivors}`, { code: status, output, session, usage, ...more });
  switch (end.how) {
    case 'stopped':
      return fail('stopped', 'the agent was stopped');
    case 'idle':
      return fail('idle', `the agent gave no sign of life for ${formatDuration(idleMs ?? 0)}`);
    case 'overspent':
      return fail('budget', 'the agent was stopped: its turn has cost more than its budget and its reservation allow');
    case 'lost':
      return fail('lost', 'the agent was started by an earlier engine, and is gone without an exit status');
    case 'ended': {
      const { verdict } = reading;
      const limit = limitOf(end, adapter);
      if (limit !== null) {
        const { text: words, until } = limit;
        // If the end of the limit is unknown, a resume tries again.
        const again = until === null ? { parks: true } : { retryAt: until };
        return fail('limit-reached', `the agent has reached a usage limit: ${words}`, again);
      }
      if (verdict.kind === 'error') return fail('exit-nonzero', `the agent failed: ${short(verdict.message)}`);
      if (status === 0 || status === null) return fail('output-missing', 'the agent ended without an answer');
      return fail(status > 128 ? 'signal' : 'exit-nonzero', `the agent ${endedWith(status)}`);
    }
  }
}

/** The limit that ended it, from its reader or the adapter's patterns; null if none. */
export function limitOf(end: OverTurn, { limits }: Adapter): AgentLimit | null {
  const { how, reading, stderr, text, at } = end;
  const { verdict } = reading;
  if (how !== 'ended' || verdict.kind === 'answer') return null;
  const message = verdict.kind === 'error' ? verdict.message : '';
  const found = limitIn([message, stderr, text].join('\n'), limits, at);
  const limit = verdict.kind === 'error' ? verdict.limit : null;
  if (found === null && limit === null) return null;
  return { text: found?.text ?? short(message), until: limit?.until ?? found?.until ?? null };
}

const MESSAGE_MAX = 1_000;
const TAIL_MAX = 4_096;

function short(text: string): string {
  return text.length <= MESSAGE_MAX ? text : `${text.slice(0, MESSAGE_MAX)}…`;
}
