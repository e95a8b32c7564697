// Sessions of simulated agents in a fork. Real agents remember what they were told until the fork; simulated ones forget the
// visits that are not kept, so that their script answers those again as it did. The files: sim/turn-program.ts.

import { isJsonMap, type Json, readJsonText } from '../base/json.ts';

export const SIM_SESSIONS = 'sim-sessions';
export const SESSION = '.jsonl';
export const TURNS = '.turns';
export const MEMORY = '.memory.json';

/** The lines before the first one about a step that is not kept. A line without a step belongs to the one before. */
export function keptLines(text: string, isKept: (step: string) => boolean): readonly string[] {
  const lines = text.split('\n').slice(0, -1);
  const end = lines.findIndex((line) => {
    const { step } = entryOf(line);
    return typeof step === 'string' && !isKept(step);
  });
  return end < 0 ? lines : lines.slice(0, end);
}

/** What an agent remembers of its script after these turns; null if there are none. */
export function memoryAfter(turns: readonly string[]): Json {
  return turns.map((line) => entryOf(line)['memory']).findLast((memory) => memory !== undefined) ?? null;
}

/** A line that was damaged says nothing. */
function entryOf(line: string): Readonly<Record<string, Json | undefined>> {
  const parsed = readJsonText(line);
  return parsed.ok && isJsonMap(parsed.value) ? parsed.value : {};
}
