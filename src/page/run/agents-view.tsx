// The agents of a run: what each works on, and what it has cost.

import { CostEntries, costsBy } from '../../view/cost-entries.ts';
import { agentsOf, type AgentView } from '../../view/status.ts';
import { isWaitingStep, parkedSteps } from '../../view/shown-status.ts';
import { costText } from '../../view/usage.ts';
import type { RunState } from '../../kernel/state.ts';
import { runAddress } from '../addresses.ts';
import { StatusIcon, statusWord } from '../icons.tsx';
import { navigate } from '../router.ts';
import { line } from '../shown-text.ts';
import { useRunShown } from './run-shown.ts';
import { useFold } from './use-fold.ts';

export function AgentsView() {
  const { of, state, records, seq, selection } = useRunShown();
  const costs = useFold(records, () => new CostEntries());
  const sums = new Map(costsBy(costs.until(seq), ({ agent }) => agent ?? '').map((sum) => [sum.name, sum]));
  const agents = agentsOf(state);
  if (agents.length === 0) return <p class="empty">This run has no agents with a name.</p>;
  return (
    <div class="scroll agentlist">
      <table role="table" aria-label="Agents">
        <thead role="rowgroup">
          <tr role="row">
            {['Agent', 'Status', 'Works on', 'Session', 'Spent'].map((title) => (
              <th key={title} role="columnheader" scope="col" class={title === 'Spent' ? 'r' : undefined}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {agents.map((agent) => {
            const { id, adapter, session, current_step: step } = agent;
            const status = shownAgentStatus(state, agent);
            const address = runAddress(of, 'agents', { ...selection, agent: id });
            const sum = sums.get(id);
            return (
              <tr
                key={id}
                role="row"
                data-item
                data-agent={id}
                data-status={status}
                tabIndex={-1}
                aria-label={`${line(id)}, ${statusWord(status)}`}
                onKeyDown={(event) => {
                  if (event.key === 'Enter' && event.target === event.currentTarget) navigate(address);
                }}
              >
                <td role="cell">
                  <div class="l1">
                    <StatusIcon status={status} label="" />
                    <a href={address}>
                      <b>{line(id, 80)}</b>
                    </a>
                    {adapter !== null && <span class="chip">{line(adapter, 30)}</span>}
                  </div>
                </td>
                <td role="cell">{status === 'waiting' ? 'asks you' : statusWord(status)}</td>
                <td role="cell">
                  {step !== null && (
                    <a class="m" href={runAddress(of, 'agents', { ...selection, step })}>
                      {line(step, 80)}
                    </a>
                  )}
                </td>
                <td role="cell" class="m dim cut">
                  {line(session ?? '', 40)}
                </td>
                <td role="cell" class="r num">
                  {sum === undefined ? '—' : costText(sum.cost)}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** As the fleet shows it. */
export function shownAgentStatus(state: RunState, { id, status, current_step }: AgentView): string {
  const step = state.steps.get(current_step ?? '');
  if (step !== undefined && isWaitingStep(state, step)) return 'waiting';
  return status === 'idle' && parkedSteps(state).some(({ agent }) => agent === id) ? 'parked' : status;
}
