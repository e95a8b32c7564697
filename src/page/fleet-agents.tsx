// The agents of active runs: which ones work, and which ones ask something.

import { useEffect, useState } from 'preact/hooks';
import type { FleetAgent } from '../view/fleet.ts';
import { runAddress } from './addresses.ts';
import { useDocument } from './document-store.ts';
import { StatusIcon } from './icons.tsx';
import { line } from './shown-text.ts';
import type { AgentLinesDocument } from '../web/protocol.ts';

/** The others are counted. */
const SHOWN_MAX = 30;
const RANKS: readonly FleetAgent['shown'][] = ['waiting', 'active', 'starting', 'parked', 'idle'];

export function FleetAgents({ agents }: { readonly agents: readonly FleetAgent[] }) {
  const shown = agents.toSorted((a, b) => rankOf(a) - rankOf(b)).slice(0, SHOWN_MAX);
  const lines = useAgentLines(agents.some(({ status }) => status === 'active'));
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
            <Agent key={keyOf(agent)} agent={agent} lines={lines.get(keyOf(agent)) ?? []} />
          ))}
          {agents.length > shown.length && <li class="dim">{agents.length - shown.length} more</li>}
        </ul>
      )}
    </section>
  );
}

interface AgentProps {
  readonly agent: FleetAgent;
  /** The last that its terminal has printed. */
  readonly lines: readonly string[];
}

function Agent({ agent: { project, run, id, shown, adapter, step }, lines }: AgentProps) {
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
      {shown === 'active' && lines.length > 0 && (
        <pre class="peek" aria-label={`Terminal of ${line(id, 60)}, last lines`}>
          {lines.map((text, index) => (
            <div key={index}>{line(text, 120)}</div>
          ))}
        </pre>
      )}
    </li>
  );
}

function rankOf({ shown }: FleetAgent): number {
  const rank = RANKS.indexOf(shown);
  return rank < 0 ? RANKS.length : rank;
}

const LINES_MS = 3_000;

/** Asked for again while agents are at work and the page is seen. */
function useAgentLines(areAtWork: boolean): ReadonlyMap<string, readonly string[]> {
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (!areAtWork) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) setRound((before) => before + 1);
    }, LINES_MS);
    return () => clearInterval(timer);
  }, [areAtWork]);
  const loaded = useDocument<AgentLinesDocument>(areAtWork ? '/data/agent-lines' : null, round);
  if (loaded.kind !== 'loaded') return new Map();
  return new Map(loaded.document.agents.map(({ agent, lines, ...of }) => [keyOf({ ...of, id: agent }), lines]));
}

function keyOf({ project, run, id }: Pick<FleetAgent, 'project' | 'run' | 'id'>): string {
  return JSON.stringify([project, run, id]);
}
