// `meow done`: an agent reports that it has done what its step asked for. The engine judges the outputs; what it objects to
// is for the agent to read and to mend.

import type { Json, JsonMap } from '../../base/json.ts';
import { isJsonMap } from '../../base/json.ts';
import { UsageError } from '../../base/usage-error.ts';
import { ask, mayBeHeld, newMessageId } from '../../ipc/client.ts';
import { EXIT } from '../exit.ts';
import type { Given } from '../flags.ts';
import { readPairs } from '../flags.ts';
import { complain, say } from '../say.ts';
import { noRun, requireSurroundings } from '../surroundings.ts';

export async function done(given: Given): Promise<number> {
  const around = requireSurroundings('done');
  const { workflow, agent, step } = around;
  const outputs = { ...readJson(given.last('json')), ...readPairs('output', given.all('output')) };
  const of = { id: newMessageId(), workflow, agent, step };
  const report = { type: 'step_done', ...of, outputs, notes: given.last('notes') };
  const answer = await ask(around, report, {
    until: null,
    stays: 'always',
    waiting() {
      if (around.inbox === null || mayBeHeld(around.inbox)) return;
      complain('meow: no engine works on the run; this waits for one, and is heard then even if you end it');
    },
  });
  if (answer === null || (answer.kind === 'error' && answer.code === 'ended')) throw noRun(around);
  if (answer.kind === 'ack') {
    for (const warning of answer.warnings ?? []) complain(`meow: ${warning}`);
    say('Complete');
    return EXIT.done;
  }
  complain(`Error: ${'message' in answer ? answer.message : answer.kind}`);
  return EXIT.failed;
}

function readJson(text: string | null): JsonMap {
  if (text === null) return {};
  const refuse = (what: string): UsageError => new UsageError(`--json ${what}`, `write --json '{"NAME": VALUE}'`);
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch (error) {
    throw error instanceof SyntaxError ? refuse(`is no JSON: ${error.message}`) : error;
  }
  if (!isJsonMap(value)) throw refuse('must be an object');
  return value;
}
