// `meow done`: an agent reports that it has done what its step asked for. The engine judges the outputs; what it objects to
// is for the agent to read and to mend.

import type { JsonMap } from '../../base/json.ts';
import { isJsonMap } from '../../base/json.ts';
import { readJsonText } from '../../base/json-text.ts';
import { UsageError } from '../../base/usage-error.ts';
import type { Patience } from '../../ipc/client.ts';
import { ask, mayBeHeld, newMessageId } from '../../ipc/client.ts';
import type { Answer } from '../../ipc/protocol.ts';
import { EXIT } from '../exit.ts';
import type { Given } from '../flags.ts';
import { readPairs } from '../flags.ts';
import { complain, say } from '../output.ts';
import type { Surroundings } from '../../app/run-context.ts';
import { noRun, requireSurroundings } from '../../app/run-context.ts';

export interface Report {
  readonly outputs: JsonMap;
  readonly notes: string | null;
}

export async function done(given: Given): Promise<number> {
  const around = requireSurroundings('done');
  const outputs = { ...readJson(given.last('json')), ...readPairs('output', given.all('output')) };
  const report = { outputs, notes: given.last('notes') };
  const answer = await reportDone(around, report, {
    waiting() {
      if (around.inbox === null || mayBeHeld(around.inbox)) return;
      complain('meow: no engine works on the run; this waits for one, and is heard then even if you end it');
    },
  });
  if (answer.kind === 'ack') {
    for (const warning of answer.warnings ?? []) complain(`meow: ${warning}`);
    say('Complete');
    return EXIT.done;
  }
  complain(`Error: ${'message' in answer ? answer.message : answer.kind}`);
  return EXIT.failed;
}

/** What the run says to it. */
export async function reportDone(
  around: Surroundings,
  report: Report,
  patience: Pick<Patience, 'waiting' | 'gone'>,
): Promise<Answer> {
  const { workflow, agent, step } = around;
  const message = { type: 'step_done', id: newMessageId(), workflow, agent, step, ...report };
  const answer = await ask(around, message, { until: null, stays: 'always', ...patience });
  if (answer === null || (answer.kind === 'error' && answer.code === 'ended')) throw noRun(around);
  return answer;
}

function readJson(text: string | null): JsonMap {
  if (text === null) return {};
  const refuse = (what: string): UsageError => new UsageError(`--json ${what}`, `write --json '{"NAME": VALUE}'`);
  const read = readJsonText(text);
  if (!read.ok) throw refuse(`is no JSON: ${read.error}`);
  if (!isJsonMap(read.value)) throw refuse('must be an object');
  return read.value;
}
