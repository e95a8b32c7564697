// `meow prime`: what the agent should be doing. It is called by a hook whenever an agent stops, so it says nothing, and
// succeeds, wherever there is nothing to say: outside of a run, for an agent that is idle, without an engine.

import { setTimeout } from 'node:timers/promises';
import { UsageError } from '../../base/usage-error.ts';
import type { Answer } from '../../ipc/protocol.ts';
import { nudgeText } from '../../ir/prompt-text.ts';
import { EXIT } from '../exit.ts';
import { nextNudge } from '../../app/stop-hook-limit.ts';
import type { Given } from '../flags.ts';
import { askSoon } from '../../app/query-engine.ts';
import { print, sayJson } from '../output.ts';
import type { Surroundings } from '../../app/run-context.ts';
import { surroundings } from '../../app/run-context.ts';

const FORMATS = ['prompt', 'json', 'hook'];

export async function prime(given: Given): Promise<number> {
  const format = given.last('format') ?? 'prompt';
  if (!FORMATS.includes(format)) {
    throw new UsageError(`there is no format ${JSON.stringify(format)}`, 'write --format prompt, json or hook');
  }
  const around = surroundings();
  if (around === null || around.agent === null) return EXIT.done;
  const answer = await askForTask(around, around.agent);
  if (answer?.kind !== 'prompt') return EXIT.done;
  const { content, step = null } = answer;
  if (format === 'json') sayJson({ agent: around.agent, step, prompt: content });
  else if (content === '') return EXIT.done;
  else if (format === 'hook') return nudge(around, around.agent, content, step ?? '');
  else print(content.endsWith('\n') ? content : `${content}\n`);
  return EXIT.done;
}

/** In the form in which hooks keep an agent going. */
async function nudge(around: Surroundings, agent: string, content: string, step: string): Promise<number> {
  const pauseMs = nextNudge(process.env['MEOW_HOOKS'] ?? null, step);
  if (pauseMs === null) return EXIT.done;
  if (pauseMs > 0) {
    await setTimeout(pauseMs);
    const still = await askForTask(around, agent);
    if (still?.kind !== 'prompt' || still.step !== step) return EXIT.done;
  }
  sayJson({ decision: 'block', reason: nudgeText(content) });
  return EXIT.done;
}

/** Null where no engine answers. `gone`: see Patience. */
export function askForTask(around: Surroundings, agent: string, gone?: AbortSignal): Promise<Answer | null> {
  return askSoon(around, { type: 'get_prompt', workflow: around.workflow, agent }, gone);
}
