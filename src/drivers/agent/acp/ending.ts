// Ends an agent by the signal that its program wants, and then whatever is left of it (drivers/kill-process-tree.ts).

import { isErrno } from '../../../sys/errno.ts';
import type { StopWays } from '../../../ir/adapter.ts';
import type { AgentStart } from '../files.ts';
import { livingLeader, whenGone } from '../../session-leader.ts';
import { endProcesses } from '../../../sys/kill-process-tree.ts';
import type { Ending } from '../../../sys/kill-process-tree.ts';
import { readProcess } from '../../step-folder.ts';

export function endBySignal(signal: StopWays['signal'], start: AgentStart, graceMs: number): Ending {
  const { folder, marker } = start;
  const leader = livingLeader(readProcess(folder), marker);
  const target = { marker, leader: leader?.pid ?? null };
  // That is what the rest is sent anyway.
  if (signal === 'SIGTERM' || leader === null || graceMs === 0) return endProcesses(target, { graceMs });
  try {
    process.kill(-leader.group, signal);
  } catch (error) {
    // Gone meanwhile.
    if (!isErrno(error, 'ESRCH')) throw error;
  }
  let rest: Ending | null = null;
  let goOn: () => void = () => undefined;
  const over = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  const timer = setTimeout(goOn, graceMs);
  whenGone(leader, folder, goOn);
  const done = over.then(() => {
    clearTimeout(timer);
    rest = endProcesses(target, { graceMs: 0 });
    return rest.done;
  });
  return {
    atOnce() {
      goOn();
      rest?.atOnce();
    },
    look() {
      rest?.look();
    },
    done,
  };
}
