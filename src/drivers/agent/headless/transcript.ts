// Transcripts of sessions, for agents that cannot copy one: a fresh session gets the transcript and continues from
// there.
//
// Each session has a file with one line for each answered turn: the prompt and the answer. A turn that is found again
// is written again and counts once.

import { ABSENT, REFUSED, tolerate } from '../../../sys/errors.ts';
import { appendLine, readFileEnd, readLines } from '../../../sys/files.ts';
import { stepFile, type StepFolder } from '../../step-folder.ts';
import { PROMPT } from './turn-launcher.ts';
import { fields, isText } from '../../../base/shape.ts';

export interface Exchange {
  /** Its files, relative to the run. */
  readonly turn: string;
  readonly told: string;
  readonly answered: string;
}

const isExchange = fields<Exchange>({ turn: isText, told: isText, answered: isText });

/** `answer` null: the whole output of the program. */
export function keepExchange(path: string, folder: StepFolder, answer: string | null): void {
  // The run's folder may have been deleted meanwhile.
  tolerate([...ABSENT, ...REFUSED], undefined, () => {
    const told = readWhole(stepFile(folder, PROMPT));
    const answered = answer ?? readWhole(stepFile(folder, 'stdout'));
    const exchange: Exchange = { turn: folder.inRun, told, answered };
    appendLine(path, exchange);
  });
}

function readWhole(path: string): string {
  return readFileEnd(path, Infinity);
}

export function readTranscript(path: string): readonly Exchange[] {
  const exchanges = readLines(path, isExchange);
  return [...new Map(exchanges.map((exchange) => [exchange.turn, exchange])).values()];
}

/** The first prompt of a session that replaces a copy. */
export function replayed(exchanges: readonly Exchange[], prompt: string): string {
  if (exchanges.length === 0) return prompt;
  const parts = exchanges.map(
    ({ told, answered }) => `[You were told]\n${told.trimEnd()}\n\n[You answered]\n${answered.trimEnd()}`,
  );
  return [
    'You are continuing an earlier conversation. Its transcript is between the two lines of equals signs. Everything that it',
    'asks for has been done, and its tags have been followed: use what you learned, and do not repeat any of it. Your new',
    `task is below the transcript.\n\n${LINE}\n${parts.join('\n\n')}\n${LINE}\n\n${prompt}`,
  ].join(' ');
}

const LINE = '='.repeat(72);
