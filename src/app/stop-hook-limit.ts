// How often an agent that stops without having reported is told to go on, and how soon: an agent that stops at once, over
// and over, would cost as much as one that works, and get nowhere. The count is kept beside what its hooks tell, for the
// step that it is at, so that it holds for every engine of the run.

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../sys/errno.ts';
import type { Json } from '../base/json.ts';
import { isJsonMap } from '../base/json.ts';

/** The first few at once, then later and later; no hook is waited for longer than a minute. */
const AT_ONCE = 5;
const PAUSE_MAX_MS = 45_000;
/** After so many it is left to rest: its step ends by its own time limit, or for lack of any sign of life. */
const NUDGES_MAX = 100;

/** Milliseconds until it is told; null: not any more. `folder`: that of its hooks; null where it has none. */
export function nextNudge(folder: string | null, step: string): number | null {
  if (folder === null) return 0;
  const path = join(dirname(folder), 'nudges.json');
  try {
    const count = countedFor(path, step) + 1;
    writeFileSync(`${path}.${process.pid}`, JSON.stringify({ step, count }), { mode: 0o600 });
    renameSync(`${path}.${process.pid}`, path);
    if (count > NUDGES_MAX) return null;
    return count <= AT_ONCE ? 0 : Math.min(1_000 * 2 ** (count - AT_ONCE - 1), PAUSE_MAX_MS);
  } catch (error) {
    // To be told once too often does less harm than not to be told.
    if (isErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED)) return 0;
    throw error;
  }
}

function countedFor(path: string, step: string): number {
  try {
    const kept = JSON.parse(readFileSync(path, 'utf8')) as Json;
    return isJsonMap(kept) && kept['step'] === step && typeof kept['count'] === 'number' ? kept['count'] : 0;
  } catch (error) {
    if (error instanceof SyntaxError || isErrno(error, ...ABSENT)) return 0;
    throw error;
  }
}
