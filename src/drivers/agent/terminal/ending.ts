// Ends what is left of a start: the agent by its own keys, by the signal that it knows, and by force, in this order; then
// what its tools have left, by the marker; and its terminal at last, so that it can be seen until then.

import type { StopWays } from '../../../ir/adapter.ts';
import { isErrno } from '../../../sys/errno.ts';
import type { AgentStart } from '../files.ts';
import { livingLeader, whenGone } from '../../session-leader.ts';
import type { ProcessEntry } from '../../process-table.ts';
import { endProcesses } from '../../kill-process-tree.ts';
import type { Ending } from '../../kill-process-tree.ts';
import { readProcess } from '../../step-folder.ts';
import type { Tmux } from '../tmux/tmux.ts';
import { within } from '../../../sys/with-timeout.ts';
import type { Console } from './screen-watcher.ts';

export function endTerminal(
  start: AgentStart,
  stop: StopWays,
  graceMs: number,
  { tmux, console }: { readonly tmux: Tmux; readonly console: Console },
): Ending {
  const hurry = new AbortController();
  let sweep: Ending | null = null;
  const run = async (): Promise<readonly ProcessEntry[]> => {
    const killAt = performance.now() + graceMs;
    const leftMs = (): number => (hurry.signal.aborted ? 0 : Math.max(0, killAt - performance.now()));
    const leader = livingLeader(readProcess(start.folder), start.marker);
    if (leader !== null && graceMs > 0) {
      const isGone = new Promise<void>((resolve) => whenGone(leader, start.folder, () => resolve()));
      const waited = (ms: number): Promise<boolean> => within(isGone, ms, hurry.signal);
      const isOver = (await hasPressed(stop.keys, console)) && (await waited(Math.min(stop.waitMs, leftMs())));
      if (!isOver) {
        signalTo(leader, stop.signal);
        await waited(leftMs());
      }
    }
    const sweepMs = Math.min(SWEEP_MS, leftMs());
    sweep = endProcesses({ marker: start.marker, leader: leader?.pid ?? null }, { graceMs: sweepMs });
    const left = await sweep.done;
    await (await tmux.find(start.marker))?.kill();
    return left;
  };
  return {
    atOnce: () => {
      hurry.abort();
      sweep?.atOnce();
    },
    look: () => sweep?.look(),
    done: run(),
  };
}

/** What an agent has left running is given this to end, as far as there is time left. */
const SWEEP_MS = 1_000;

/** Not into a question (H6). */
async function hasPressed(keys: readonly string[], console: Console): Promise<boolean> {
  if (keys.length === 0) return false;
  for (let tries = 0; tries < TRIES; tries += 1) {
    const screen = await console.look();
    if (screen === null || screen.dialog !== null) return false;
    const put = await console.press(keys, screen);
    if (put !== 'changed') return put === 'done';
  }
  return false;
}

/** A screen that changes all the time is not waited for. */
const TRIES = 20;

/** The shell that leads the group waits for the program, whatever it is sent. */
function signalTo(leader: ProcessEntry, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader.group, signal);
  } catch (error) {
    // Gone meanwhile, or not ours to signal.
    if (!isErrno(error, 'ESRCH', 'EPERM')) throw error;
  }
}
