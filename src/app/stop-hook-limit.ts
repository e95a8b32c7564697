// The stop hook of an agent: it tells an agent that stops without having reported to continue. An agent that stops again
// and again costs as much as one that works, so the hook waits longer each time and gives up in the end. The count is kept
// next to the agent's hook files, per step, so that it survives the engine.

import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { isJsonMap, type Json } from '../base/json.ts';
import { nudgeText } from '../ir/prompt-text.ts';
import { tolerate, UNUSABLE } from '../sys/errors.ts';
import { readJsonFile, writeJsonFile } from '../sys/files.ts';
import { currentPrompt } from './agent-requests.ts';
import type { RunContext } from './run-context.ts';

/** The first few without delay, then with growing delays; agents wait at most a minute for a hook. */
const IMMEDIATE = 5;
const DELAY_MAX_MS = 45_000;
/** After that many the agent is left alone: its step ends by its own timeout, or because it is idle. */
const NUDGES_MAX = 100;

export interface StoppedAgent {
  readonly agent: string;
  /** The step that it has not reported. */
  readonly step: string;
  readonly prompt: string;
}

/** The text that makes the agent continue; null if it may stop. */
export async function replyToStop(context: RunContext, { agent, step, prompt }: StoppedAgent): Promise<string | null> {
  const delayMs = nextNudge(process.env['MEOW_HOOKS'] ?? null, step);
  if (delayMs === null) return null;
  if (delayMs > 0) {
    await sleep(delayMs);
    const still = await currentPrompt(context, agent);
    if (still?.kind !== 'prompt' || still.step !== step) return null;
  }
  return nudgeText(prompt);
}

/** Milliseconds to wait before the next nudge; null if the limit is reached. `folder`: the agent's hook files, if any. */
export function nextNudge(folder: string | null, step: string): number | null {
  if (folder === null) return 0;
  const path = join(dirname(folder), 'nudges.json');
  // One nudge too many does less harm than none.
  return tolerate(UNUSABLE, 0, () => {
    const stored = readJsonFile(path) as Json;
    const last = isJsonMap(stored) && stored['step'] === step ? stored['count'] : 0;
    const count = (typeof last === 'number' ? last : 0) + 1;
    writeJsonFile(path, { step, count });
    if (count > NUDGES_MAX) return null;
    return count <= IMMEDIATE ? 0 : Math.min(1_000 * 2 ** (count - IMMEDIATE - 1), DELAY_MAX_MS);
  });
}
