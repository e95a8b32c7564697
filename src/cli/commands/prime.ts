// `meow prime`: prints the prompt that the agent should be working on. A hook calls it whenever an agent stops, so it
// prints nothing and succeeds if there is no prompt: outside of a run, for an idle agent, or without an engine.

import { currentPrompt } from '../../app/agent-requests.ts';
import { runContext } from '../../app/run-context.ts';
import { replyToStop } from '../../app/stop-hook-limit.ts';
import { UsageError } from '../../base/usage-error.ts';
import { EXIT } from '../exit.ts';
import type { Given } from '../flags.ts';
import { print, printJson } from '../output.ts';

const FORMATS = ['prompt', 'json', 'hook'];

export async function prime(given: Given): Promise<number> {
  const format = given.last('format') ?? 'prompt';
  if (!FORMATS.includes(format)) {
    throw new UsageError(`unknown format ${JSON.stringify(format)}`, 'write --format prompt, json or hook');
  }
  const context = runContext();
  if (context === null || context.agent === null) return EXIT.done;
  const { agent } = context;
  const answer = await currentPrompt(context, agent);
  if (answer?.kind !== 'prompt') return EXIT.done;
  const { content: prompt, step = null } = answer;
  if (format === 'json') printJson({ agent, step, prompt });
  else if (prompt === '') return EXIT.done;
  else if (format === 'hook') {
    const reason = await replyToStop(context, { agent, step: step ?? '', prompt });
    if (reason !== null) printJson({ decision: 'block', reason });
  } else print(prompt.endsWith('\n') ? prompt : `${prompt}\n`);
  return EXIT.done;
}
