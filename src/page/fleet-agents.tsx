// The agents of active runs: which ones work, and which ones ask something.

import type { FleetAgent } from '../view/fleet.ts';
import { runAddress } from './addresses.ts';
import { StatusIcon } from './icons.tsx';
import { line } from './shown-text.ts';

/** The others are counted. */
const SHOWN_MAX = 30;
const RANKS: readonly FleetAgent['shown'][] = ['waiting', 'active', 'starting', 'parked', 'idle'];

export function FleetAgents({ agents }: { readonly agents: readonly FleetAgent[] }) {
  const shown = agents.toSorted((a, b) => rankOf(a) - rankOf(b)).slice(0, SHOWN_MAX);
  const atWork = agents.filter(({ shown: status }) => status === 'active' || status === 'starting').length;
  return (
    <section aria-label="Agents">
      <div class="sec">
        <h2>
          Agents <span class="n">{agents.length}</span>
        </h2>
        <div class="side">{agents.length > 0 && <span>{atWork} at work</span>}</div>
      </div>
      {shown.length === 0 ? (
        <p class="card quiet">No agent is at work.</p>
      ) : (
        <ul class="card agents">
          {shown.map((agent) => (
            <Agent key={`${agent.project}/${agent.run}/${agent.id}`} agent={agent} />
          ))}
          {agents.length > shown.length && <li class="dim">{agents.length - shown.length} more</li>}
        </ul>
      )}
    </section>
  );
}

function Agent({ agent: { project, run, id, shown, adapter, step } }: { readonly agent: FleetAgent }) {
  return (
    <li data-status={shown}>
      <div class="l1">
        <StatusIcon status={shown} />
        <a class="cut" href={runAddress({ project, run }, 'agents', { agent: id })}>
          <b>{line(id, 60)}</b>
        </a>
        {adapter !== null && <span class="chip">{line(adapter, 30)}</span>}
        <span class={`st cut ${shown}`}>
          {shown === 'waiting' ? 'asks you' : shown === 'active' ? '' : shown}
          {shown !== 'active' && ' · '}
          {line(run, 60)}
          {step !== null && shown === 'active' && ` ${line(step, 60)}`}
        </span>
      </div>
    </li>
  );
}

function rankOf({ shown }: FleetAgent): number {
  const rank = RANKS.indexOf(shown);
  return rank < 0 ? RANKS.length : rank;
}
