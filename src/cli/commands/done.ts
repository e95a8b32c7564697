// `meow done`: an agent reports that its step is finished. The engine checks the outputs; the agent reads its objections
// and fixes them.

import { messageOf, reportDone } from '../../app/agent-requests.ts';
import { requireRunContext } from '../../app/run-context.ts';
import type { JsonMap } from '../../base/json.ts';
import { isJsonMap } from '../../base/json.ts';
import { readJsonText } from '../../base/json-text.ts';
import { UsageError } from '../../base/usage-error.ts';
import { EXIT } from '../exit.ts';
import type { Given } from '../flags.ts';
import { readPairs } from '../flags.ts';
import { warn, printLine } from '../output.ts';

export async function done(given: Given): Promise<number> {
  const context = requireRunContext('done');
  const outputs = { ...readJson(given.last('json')), ...readPairs('output', given.all('output')) };
  const report = { outputs, notes: given.last('notes') };
  const answer = await reportDone(context, report, {
    onNoEngine: () =>
      warn('meow: the run has no engine; waiting for one. The report stays queued even if you stop this command'),
  });
  if (answer.kind === 'ack') {
    for (const warning of answer.warnings ?? []) warn(`meow: ${warning}`);
    printLine('Complete');
    return EXIT.done;
  }
  warn(`Error: ${messageOf(answer)}`);
  return EXIT.failed;
}

function readJson(text: string | null): JsonMap {
  if (text === null) return {};
  const refuse = (what: string): UsageError => new UsageError(`--json ${what}`, `write --json '{"NAME": VALUE}'`);
  const read = readJsonText(text);
  if (!read.ok) throw refuse(`is not valid JSON: ${read.error}`);
  if (!isJsonMap(read.value)) throw refuse('must be an object');
  return read.value;
}
