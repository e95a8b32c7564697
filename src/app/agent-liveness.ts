// Whether the agents of a run without an engine are still running: the journal only has what the last engine knew.

import { ENDED_BY_US, storedStart } from '../drivers/agent/files.ts';
import { markerOf } from '../drivers/environment.ts';
import { livingLeader } from '../drivers/session-leader.ts';
import { processIn } from '../drivers/step-folder.ts';
import type { Store } from '../engine/ports.ts';
import { allProcesses } from '../sys/process.ts';
import { type AgentView, statusView } from '../view/status.ts';
import type { FollowedRun } from './follow.ts';

/** The agents of a run without an engine. */
export function agentsLeft(store: Store, { id, state }: FollowedRun): Promise<readonly AgentView[]> {
  const files = store.files(id);
  const run = { runId: id, mark: state.request?.mark ?? '' };
  const lookAt = async (agent: AgentView): Promise<AgentView> => {
    if (agent.status === 'stopped' || agent.status === 'gone') return agent;
    const start = await storedStart(files, agent.id);
    if (start === null) return agent;
    const names = (await files.list(start.inRun)).map(({ name }) => name);
    if (names.includes(ENDED_BY_US)) return { ...agent, status: 'stopped', current_step: null };
    // A headless agent has no process between two prompts.
    if (start.channel === 'headless') return state.phase === 'ended' ? { ...agent, status: 'stopped' } : agent;
    const status = await files.read(`${start.inRun}/status`);
    const leader = processIn(status === null ? null : Buffer.from(status).toString('utf8'));
    return livingLeader(leader, markerOf(run, start.name)) === null ? { ...agent, status: 'gone' } : agent;
  };
  return Promise.all(statusView(state).agents.map(lookAt));
}

/** The ids of runs that have running processes: agents, or processes that these started. */
export function runsWithProcesses(): ReadonlySet<string> {
  const markers = allProcesses().flatMap(({ marker }) => marker ?? []);
  return new Set(markers.map((marker) => marker.slice(0, marker.indexOf('.'))));
}
