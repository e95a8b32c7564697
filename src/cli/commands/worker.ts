// `meow worker`: drives runs of a fleet on this machine, until it is stopped.

import { constants } from 'node:os';

import { work } from '../../app/fleet-worker.ts';
import { UsageError } from '../../base/errors.ts';
import { parseDuration } from '../../base/time.ts';
import { EXIT, printLine, warn } from '../output.ts';

interface WorkerFlags {
  readonly room?: number;
  readonly drain?: string;
}

const ROOM = 4;

export async function worker({ room = ROOM, drain = '0s' }: WorkerFlags): Promise<number> {
  const drainMs = parseDuration(drain);
  if (drainMs === null) throw new UsageError(`${drain} is not a duration`, 'write it as 30s, 10m or 2h');
  const stopping = new AbortController();
  let ended: keyof typeof constants.signals | null = null;
  const end = (signal: NodeJS.Signals): void => {
    // A second signal does not wait.
    if (ended !== null) process.exit(128 + constants.signals[signal]);
    ended = signal;
    stopping.abort();
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end);
  const isIdle = await work({ room, drainMs, signal: stopping.signal, note: printLine });
  // Steps that still run continue without this process, and the next worker finds them.
  if (!isIdle) {
    warn('meow: left its runs as they are; the next meow worker on this machine resumes them');
    process.exit(EXIT.done);
  }
  return EXIT.done;
}
