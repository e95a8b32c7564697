// Stops what is left of a start, in this order: the agent by its own keys, by its signal, by force; then processes of
// its tools, by marker; the terminal last, so that it stays visible until then.

import type { StopWays } from '../../../ir/adapter.ts';
import { isErrno } from '../../../sys/errno.ts';
import type { AgentStart } from '../files.ts';
import { livingLeader, whenGone } from '../../session-leader.ts';
import type { ProcessEntry } from '../../../sys/process-table.ts';
import { killProcessTree } from '../../../sys/kill-process-tree.ts';
import type { Termination } from '../../../sys/kill-process-tree.ts';
import { readProcess } from '../../step-folder.ts';
import type { Tmux } from '../tmux/tmux.ts';
import { within } from '../../../sys/with-timeout.ts';
import type { ScreenWatcher } from './screen-watcher.ts';

export function endTerminal(
  start: AgentStart,
  stop: StopWays,
  graceMs: number,
  { tmux, watcher }: { readonly tmux: Tmux; readonly watcher: ScreenWatcher },
): Termination {
  const hurry = new AbortController();
  let sweep: Termination | null = null;
  const run = async (): Promise<readonly ProcessEntry[]> => {
    const killAt = performance.now() + graceMs;
    const leftMs = (): number => (hurry.signal.aborted ? 0 : Math.max(0, killAt - performance.now()));
    const leader = livingLeader(readProcess(start.folder), start.marker);
    if (leader !== null && graceMs > 0) {
      const isGone = new Promise<true>((resolve) => whenGone(leader, start.folder, () => resolve(true)));
      const waited = async (timeoutMs: number): Promise<boolean> =>
        (await within(isGone, { timeoutMs, signal: hurry.signal })) === true;
      const isOver = (await hasPressed(stop.keys, watcher)) && (await waited(Math.min(stop.waitMs, leftMs())));
      if (!isOver) {
        signalTo(leader, stop.signal);
        await waited(leftMs());
      }
    }
    const sweepMs = Math.min(SWEEP_MS, leftMs());
    sweep = killProcessTree({ marker: start.marker, leader: leader?.pid ?? null }, { graceMs: sweepMs });
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

/** Time for left-over processes to end, if the grace period allows. */
const SWEEP_MS = 1_000;

/** Never presses into a dialog (host/6). */
async function hasPressed(keys: readonly string[], watcher: ScreenWatcher): Promise<boolean> {
  if (keys.length === 0) return false;
  for (let tries = 0; tries < TRIES; tries += 1) {
    const screen = await watcher.observe();
    if (screen === null || screen.dialog !== null) return false;
    const put = await watcher.press(keys, screen);
    if (put !== 'changed') return put === 'done';
  }
  return false;
}

/** Bounds the attempts on a screen that never stops changing. */
const TRIES = 20;

/** The shell that leads the group waits for the program, whatever signal it gets. */
function signalTo(leader: ProcessEntry, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader.group, signal);
  } catch (error) {
    // The process ended meanwhile, or belongs to someone else.
    if (!isErrno(error, 'ESRCH', 'EPERM')) throw error;
  }
}
