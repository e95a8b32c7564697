// `meow prime`: what the agent should be doing. It is called by a hook whenever an agent stops, so it says nothing, and
// succeeds, wherever there is nothing to say: outside of a run, for an agent that is idle, without an engine.

import { UsageError } from '../../base/usage-error.ts';
import { EXIT } from '../exit.ts';
import type { Given } from '../flags.ts';
import { askSoon } from '../quick-question.ts';
import { print, sayJson } from '../say.ts';
import { surroundings } from '../surroundings.ts';

export async function prime(given: Given): Promise<number> {
  const format = given.last('format') ?? 'prompt';
  if (format !== 'prompt' && format !== 'json') {
    throw new UsageError(`there is no format ${JSON.stringify(format)}`, 'write --format prompt or --format json');
  }
  const around = surroundings();
  if (around === null || around.agent === null) return EXIT.done;
  const { workflow, agent } = around;
  const answer = await askSoon(around, { type: 'get_prompt', workflow, agent });
  if (answer?.kind !== 'prompt') return EXIT.done;
  const { content, step = null } = answer;
  if (format === 'json') sayJson({ agent, step, prompt: content });
  else if (content !== '') print(content.endsWith('\n') ? content : `${content}\n`);
  return EXIT.done;
}
