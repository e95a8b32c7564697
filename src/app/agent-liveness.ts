// Whether the agents of a run live, where no engine watches over them: what the journal says was true when one last did.

import { AgentFolder, wasEndedByUs } from '../drivers/agent/files.ts';
import { markerOf } from '../drivers/environment.ts';
import { livingLeader } from '../drivers/session-leader.ts';
import { allProcesses } from '../drivers/process-table.ts';
import { readProcess } from '../drivers/step-folder.ts';
import type { FileStore } from '../stores/files.ts';
import type { AgentView } from '../view/status.ts';
import { statusView } from '../view/status.ts';
import type { ReadRun } from './runs.ts';

/** The agents of a run that no engine works on. */
export function agentsLeft(store: FileStore, { id, state }: ReadRun): readonly AgentView[] {
  const run = { runId: id, runFolder: store.runFolder(id), mark: state.request?.mark ?? '' };
  return statusView(state).agents.map((agent) => {
    if (agent.status === 'stopped' || agent.status === 'gone') return agent;
    const start = new AgentFolder({ ...run, markerOf: (effect) => markerOf(run, effect) }, agent.id).current();
    if (start === null) return agent;
    if (wasEndedByUs(start)) return { ...agent, status: 'stopped', current_step: null };
    // Between two prompts nothing of it runs, and after the last there is none to come.
    if (start.channel === 'headless') return state.phase === 'ended' ? { ...agent, status: 'stopped' } : agent;
    return livingLeader(readProcess(start.folder), start.marker) === null ? { ...agent, status: 'gone' } : agent;
  });
}

/** The ids of runs that processes belong to which live, be they agents or what those have started. */
export function runsWithProcesses(): ReadonlySet<string> {
  return new Set(
    allProcesses().flatMap(({ marker }) => (marker === null ? [] : [marker.slice(0, marker.indexOf('.'))])),
  );
}
