// The program of the detached sender: `meow sender`, which runs start and people never call.

import { setPriority } from 'node:os';

import { tolerate, UNUSABLE } from '../../sys/errors.ts';
import { runSender } from './sender.ts';
import { SEND_TASKS } from './tasks.ts';

/** Runs come first. */
const PRIORITY = 15;

export async function main(): Promise<number> {
  tolerate(UNUSABLE, undefined, () => setPriority(PRIORITY));
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stopping.abort());
  await runSender({ tasks: SEND_TASKS, isDetached: true }, stopping.signal);
  return 0;
}
