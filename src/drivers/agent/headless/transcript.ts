// Transcripts of sessions, for agents that cannot copy one: a fresh session gets the transcript and continues from
// there.
//
// Each session has a file with one line for each answered turn: the prompt and the answer. A turn that is found again
// is written again and counts once.

import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ABSENT, isErrno } from '../../../sys/errno.ts';
import type { StepFolder } from '../../step-folder.ts';
import { PROMPT } from './turn-launcher.ts';

export interface Exchange {
  /** Folder of the turn, relative to the run. */
  readonly turn: string;
  readonly told: string;
  readonly answered: string;
}

/** `answer` null: the whole output of the program. */
export function keepExchange(path: string, { path: folder, inRun }: StepFolder, answer: string | null): void {
  try {
    const told = readFileSync(join(folder, PROMPT), 'utf8');
    const answered = answer ?? readFileSync(join(folder, 'stdout'), 'utf8');
    const exchange: Exchange = { turn: inRun, told, answered };
    // Starts with a line end, which terminates a torn line before it.
    appendFileSync(path, `\n${JSON.stringify(exchange)}\n`, { mode: 0o600 });
  } catch (error) {
    // The run's folder was deleted meanwhile.
    if (!isErrno(error, ...ABSENT)) throw error;
  }
}

export function readTranscript(path: string): readonly Exchange[] {
  if (!existsSync(path)) return [];
  const exchanges = readFileSync(path, 'utf8')
    .split('\n')
    .flatMap((line) => parsed(line) ?? []);
  return [...new Map(exchanges.map((exchange) => [exchange.turn, exchange])).values()];
}

/** The first prompt of a session that replaces a copy. */
export function replayed(exchanges: readonly Exchange[], prompt: string): string {
  if (exchanges.length === 0) return prompt;
  const parts = exchanges.map(
    ({ told, answered }) => `[You were told]\n${told.trimEnd()}\n\n[You answered]\n${answered.trimEnd()}`,
  );
  return [
    'You go on from an earlier conversation, whose transcript stands between the two lines of signs. All that is asked for',
    'there has been done, and its tags have been followed: use what you know from it, and do none of it again. What you are',
    `to do now stands below it.\n\n${LINE}\n${parts.join('\n\n')}\n${LINE}\n\n${prompt}`,
  ].join(' ');
}

const LINE = '='.repeat(72);

/** Null if it is torn. */
function parsed(line: string): Exchange | null {
  if (line === '') return null;
  try {
    return JSON.parse(line) as Exchange;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
