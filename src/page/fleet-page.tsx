// The fleet: what needs a person, every run, the agents at work, and what all of it costs.

import { useState } from 'preact/hooks';
import { hasEnded, type FleetRun, type FleetView } from '../view/fleet.ts';
import { FleetAgents } from './fleet-agents.tsx';
import { EndedTable, keyOf, RunningTable, type ShownRun } from './fleet-runs.tsx';
import { fleet, pageTitle } from './fleet-store.ts';
import { FleetUsage } from './fleet-usage.tsx';
import { findText, isFound } from './find.ts';
import { NeedCard } from './need-card.tsx';
import { shownNeeds } from './needs.ts';
import { line, numeral } from './shown-text.ts';
import { useSteadyOrder } from './use-steady-order.ts';

export function FleetPage() {
  pageTitle.value = null;
  const shown = fleet.value;
  const [project, setProject] = useState<string | null>(null);
  if (shown === null) return <main class="fleet" aria-busy="true" />;
  const projects = [...new Set(shown.runs.map((run) => run.project))].toSorted();
  const filtered = filter(shown, projects.includes(project ?? '') ? project : null);
  const ended = filtered.filter(({ run }) => hasEnded(run.status));
  const running = filtered.filter(({ run }) => !hasEnded(run.status));
  const failed = ended.filter(({ run }) => run.status === 'failed').length;
  return (
    <main class="fleet">
      <div>
        <Needs />
        <section aria-label="Running">
          <div class="sec">
            <h2>
              Running <span class="n">{numeral(running.length)}</span>
            </h2>
            <div class="side">
              {projects.length > 1 && <ProjectChoice projects={projects} chosen={project} choose={setProject} />}
            </div>
          </div>
          {running.length > 0 ? <Runs runs={running} Table={RunningTable} /> : <NothingRuns fleet={shown} />}
        </section>
        <section aria-label="Ended">
          <div class="sec">
            <h2>
              Ended today <span class="n">{numeral(ended.length)}</span>
            </h2>
            <div class="side">{failed > 0 && <span>{numeral(failed)} failed</span>}</div>
          </div>
          {ended.length > 0 ? (
            <Runs runs={ended} Table={EndedTable} />
          ) : (
            <p class="card quiet">No run has ended in the last 24 hours.</p>
          )}
        </section>
      </div>
      <aside>
        <FleetAgents agents={shown.agents.filter(({ id, run, adapter, step }) => isFound([id, run, adapter, step]))} />
        <FleetUsage />
      </aside>
    </main>
  );
}

function filter({ runs, needs }: FleetView, project: string | null): readonly ShownRun[] {
  const waiting = new Map<string, number>();
  for (const need of needs) {
    const key = `${need.project}/${need.run}`;
    waiting.set(key, (waiting.get(key) ?? 0) + 1);
  }
  return runs
    .filter((run) => project === null || run.project === project)
    .filter((run) => isFound([run.id, run.project, run.source, run.now]))
    .map((run) => ({ run, waiting: waiting.get(keyOf(run)) ?? 0 }));
}

function Needs() {
  const needs = shownNeeds.value.filter(({ gate, run, project, prompt, agent }) =>
    isFound([gate, run, project, prompt, agent]),
  );
  return (
    <section aria-label="Needs you">
      <div class="sec">
        <h2>
          Needs you <span class="n">{needs.length}</span>
        </h2>
        {needs.length > 0 && (
          <div class="side hide-s" aria-hidden="true">
            <span>
              <kbd>j</kbd> <kbd>k</kbd> move
            </span>
            <span>
              <kbd>a</kbd> approve
            </span>
            <span>
              <kbd>x</kbd> reject
            </span>
            <span>
              <kbd>t</kbd> terminal
            </span>
          </div>
        )}
      </div>
      {needs.length === 0 ? (
        <p class="card quiet">Nothing needs you.</p>
      ) : (
        <div class="asks">
          {needs.map((need) => (
            <NeedCard key={`${need.project}/${need.run}/${need.gate}/${need.opened_at ?? ''}`} need={need} />
          ))}
        </div>
      )}
    </section>
  );
}

function Runs({ runs, Table }: { readonly runs: readonly ShownRun[]; readonly Table: typeof RunningTable }) {
  const { items, pointer } = useSteadyOrder(runs, ({ run }) => keyOf(run));
  return (
    <div class="card" {...pointer}>
      <Table runs={items} />
    </div>
  );
}

function NothingRuns({ fleet: { runs } }: { readonly fleet: FleetView }) {
  if (findText.value.trim() !== '') return <p class="card quiet">No active run contains this text.</p>;
  if (runs.length > 0) return <p class="card quiet">Nothing runs now.</p>;
  return (
    <p class="card quiet">
      Nothing has run here yet. <code>meow run FILE</code> starts a workflow, and <code>meow init</code> writes an
      example.
    </p>
  );
}

interface ProjectChoiceProps {
  readonly projects: readonly FleetRun['project'][];
  readonly chosen: string | null;
  readonly choose: (project: string | null) => void;
}

function ProjectChoice({ projects, chosen, choose }: ProjectChoiceProps) {
  return (
    <select
      class="chip"
      aria-label="Project"
      value={chosen ?? ''}
      onChange={({ currentTarget }) => choose(currentTarget.value === '' ? null : currentTarget.value)}
    >
      <option value="">all projects</option>
      {projects.map((name) => (
        <option key={name} value={name}>
          {line(name, 40)}
        </option>
      ))}
    </select>
  );
}
