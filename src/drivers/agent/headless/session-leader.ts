// The process that leads a turn, whoever started it: by its marker (drivers/session-leader.ts), or, of one that the spawner has begun and
// that is only just becoming its program, by its age. Until then it has the environment of the helper.

import { livingLeader } from '../../session-leader.ts';
import { bootId, findProcess, hadBegunAt } from '../../../sys/process-table.ts';
import type { ProcessEntry } from '../../../sys/process-table.ts';
import type { ProcessRecord } from '../../step-folder.ts';

/** Null where it does not live. */
export function turnLeader(record: ProcessRecord, marker: string): ProcessEntry | null {
  return livingLeader(record, marker) ?? becoming(record);
}

function becoming(record: ProcessRecord): ProcessEntry | null {
  if (record.kind !== 'written' || record.bootId !== bootId() || record.uptime === null) return null;
  const entry = findProcess(record.pid);
  if (entry === null || entry.marker !== null || entry.session !== entry.pid) return null;
  return hadBegunAt(entry, record.uptime) === true ? entry : null;
}
