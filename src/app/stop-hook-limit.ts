// The stop hook of an agent: it tells an agent that stops without having reported to continue. An agent that stops again
// and again costs as much as one that works, so the hook waits longer each time and gives up in the end. The count is kept
// next to the agent's hook files, per step, so that it survives the engine.

import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../sys/errno.ts';
import { readJsonFile, writeJsonFile } from '../sys/json-file.ts';
import type { Json } from '../base/json.ts';
import { isJsonMap } from '../base/json.ts';
import { nudgeText } from '../ir/prompt-text.ts';
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
  try {
    const count = readCount(path, step) + 1;
    writeJsonFile(path, { step, count });
    if (count > NUDGES_MAX) return null;
    return count <= IMMEDIATE ? 0 : Math.min(1_000 * 2 ** (count - IMMEDIATE - 1), DELAY_MAX_MS);
  } catch (error) {
    // One nudge too many does less harm than none.
    if (isErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED)) return 0;
    throw error;
  }
}

function readCount(path: string, step: string): number {
  const stored = readJsonFile(path) as Json;
  return isJsonMap(stored) && stored['step'] === step && typeof stored['count'] === 'number' ? stored['count'] : 0;
}
