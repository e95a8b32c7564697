// The fleet: what needs a person, every run, and the agents at work.

import type { FleetRun } from '../view/fleet.ts';
import { runAddress } from './addresses.ts';
import { CountsBar } from './counts-bar.tsx';
import { fleet } from './fleet-store.ts';
import { StatusIcon } from './icons.tsx';
import { line } from './shown-text.ts';

const ENDED = ['done', 'failed', 'stopped'];

export function FleetPage() {
  const shown = fleet.value;
  if (shown === null) return <main class="fleet" aria-busy="true" />;
  const ended = shown.runs.filter(({ status }) => ENDED.includes(status ?? ''));
  const running = shown.runs.filter((run) => !ended.includes(run));
  return (
    <main class="fleet">
      <div>
        <Runs name="Running" runs={running} />
        <Runs name="Ended" runs={ended} />
      </div>
    </main>
  );
}

function Runs({ name, runs }: { readonly name: string; readonly runs: readonly FleetRun[] }) {
  return (
    <section aria-label={name}>
      <div class="sec">
        <h2>
          {name} <span class="n">{runs.length}</span>
        </h2>
      </div>
      <div class="card">
        <table>
          <tbody>
            {runs.map((run) => (
              <tr key={`${run.project}/${run.id}`} data-status={run.shown}>
                <td>
                  <div class="rname">
                    <StatusIcon status={run.shown} />
                    <a href={runAddress({ project: run.project, run: run.id })}>
                      <b>{line(run.id)}</b>
                    </a>
                  </div>
                </td>
                <td class="c-bar">{run.counts !== null && <CountsBar counts={run.counts} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
