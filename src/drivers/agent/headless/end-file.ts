// `turn-end.json` in a turn's folder: how the turn ended, if its exit status does not say. It is written before the engine sends
// a signal, so that a later engine knows why the turn is gone.

import { join } from 'node:path';
import type { StepFolder } from '../../step-folder.ts';
import { readExit } from '../../step-folder.ts';
import { readJsonFile, writeJsonFileIfWanted } from '../../../sys/json-file.ts';

export interface TurnEnding {
  readonly how: 'ended' | EndReason;
  /** 128 + N where signal N ended it; null where it left none. */
  readonly status: number | null;
}

export type EndReason = 'stopped' | 'idle' | 'lost';

export function writeEnd({ path }: StepFolder, how: EndReason): void {
  writeJsonFileIfWanted(join(path, 'turn-end.json'), { how });
}

/** Null where nothing was written. What it tells of may still be under way. */
export function writtenEnd({ path }: StepFolder): EndReason | null {
  return (readJsonFile(join(path, 'turn-end.json')) as { readonly how: EndReason } | null)?.how ?? null;
}

/** For a turn that this life began and did not end. Null where nobody has recorded how it ended. */
export function ownEnd(folder: StepFolder): TurnEnding | null {
  const status = readExit(folder);
  return status === null ? null : { how: 'ended', status };
}

/** For a turn whose processes are gone. Null where nobody saw it end. */
export function readEnd(folder: StepFolder): TurnEnding | null {
  const [status, how] = [readExit(folder), writtenEnd(folder)];
  if (status === null) return how === null ? null : { how, status };
  return { how: how === null || how === 'lost' ? 'ended' : how, status };
}
