// The runs of the fleet as two tables: active runs, and runs that have ended.

import type { ComponentChildren } from 'preact';
import type { FleetRun } from '../view/fleet.ts';
import { runAddress } from './addresses.ts';
import { Age } from './age.tsx';
import { now } from './clock.ts';
import { CountsBar, type ShownCounts } from './counts-bar.tsx';
import { StatusIcon, statusWord } from './icons.tsx';
import { Spent } from './money.tsx';
import { navigate } from './router.ts';
import { duration, line, moment, numeral } from './shown-text.ts';

/** `waiting`: how many of its steps wait for a person. */
export interface ShownRun {
  readonly run: FleetRun;
  readonly waiting: number;
}

export function RunningTable({ runs }: { readonly runs: readonly ShownRun[] }) {
  return (
    <table role="table">
      <thead role="rowgroup">
        <tr role="row">
          <Head>Run</Head>
          <Head>Project</Head>
          <Head>Steps</Head>
          <Head>Now</Head>
          <Head right>Since</Head>
          <Head right>Spent</Head>
        </tr>
      </thead>
      <tbody role="rowgroup">
        {runs.map((shown) => (
          <RunRow key={keyOf(shown.run)} of={shown}>
            <td role="cell" class="c-bar">
              <Counts of={shown} />
            </td>
            <td role="cell" class="c-now">
              <Now run={shown.run} />
            </td>
            <td role="cell" class="r num dim c-since">
              {shown.run.duration_ms === null ? <Age since={shown.run.clock_from} /> : duration(shown.run.duration_ms)}
            </td>
            <td role="cell" class="r num money">
              <Spent run={shown.run} />
            </td>
          </RunRow>
        ))}
      </tbody>
    </table>
  );
}

export function EndedTable({ runs }: { readonly runs: readonly ShownRun[] }) {
  return (
    <table role="table">
      <thead role="rowgroup" class="unseen">
        <tr role="row">
          <Head>Run</Head>
          <Head>Project</Head>
          <Head>Result</Head>
          <Head>Ended</Head>
          <Head>Took</Head>
          <Head>Spent</Head>
        </tr>
      </thead>
      <tbody role="rowgroup">
        {runs.map((shown) => (
          <RunRow key={keyOf(shown.run)} of={shown}>
            <td role="cell" class="c-now dim">
              <Result of={shown} />
            </td>
            <td role="cell" class="r num dim c-since">
              {shown.run.ended_at !== null && moment(Date.parse(shown.run.ended_at), now.peek())}
            </td>
            <td role="cell" class="r num dim c-proj">
              {shown.run.duration_ms !== null && duration(shown.run.duration_ms)}
            </td>
            <td role="cell" class="r num money">
              <Spent run={shown.run} />
            </td>
          </RunRow>
        ))}
      </tbody>
    </table>
  );
}

function Head({ right = false, children }: { readonly right?: boolean; readonly children: ComponentChildren }) {
  return (
    <th role="columnheader" scope="col" class={right ? 'r' : undefined}>
      {children}
    </th>
  );
}

/** Its name begins with the run's id. Enter opens the run. */
function RunRow({ of: { run, waiting }, children }: { readonly of: ShownRun; readonly children: ComponentChildren }) {
  const address = runAddress({ project: run.project, run: run.id });
  const status = waiting > 0 ? 'waiting' : run.shown;
  return (
    <tr
      role="row"
      data-status={run.shown}
      data-item
      tabIndex={-1}
      aria-label={`${line(run.id)}, ${statusWord(status)}, project ${line(run.project)}`}
      onKeyDown={(event) => {
        if (event.key === 'Enter' && event.target === event.currentTarget) navigate(address);
      }}
    >
      <td role="cell" class="c-run">
        <div class="rname">
          <StatusIcon status={status} />
          <div>
            <a href={address}>
              <b>{line(run.id)}</b>
            </a>
            <small>{line(run.source ?? '')}</small>
          </div>
        </div>
      </td>
      <td role="cell" class="c-proj">
        <span class="chip">{line(run.project, 40)}</span>
      </td>
      {children}
    </tr>
  );
}

function Counts({ of: { run, waiting } }: { readonly of: ShownRun }) {
  const { counts } = run;
  if (counts === null) return null;
  const total = Object.values(counts).reduce((all, count) => all + count, 0);
  return (
    <div data-counts={JSON.stringify(counts)}>
      <CountsBar counts={shownCounts(run, waiting)} />
      <div class="faint num steps">
        {numeral(counts.done + counts.skipped)} of {numeral(total)}
        {counts.failed > 0 && <span class="bad-text"> · {numeral(counts.failed)} failed</span>}
      </div>
    </div>
  );
}

function shownCounts({ counts, shown }: FleetRun, waiting: number): ShownCounts {
  if (counts === null) return {};
  const { done, failed, pending, running } = counts;
  const asking = Math.min(waiting, running);
  // No step of a parked run is in progress: the next one waits for a usage limit.
  const parked = shown === 'parked' ? Math.min(1, pending) : 0;
  return { done, running: running - asking, waiting: asking, failed, parked, pending: pending - parked };
}

function Now({ run }: { readonly run: FleetRun }) {
  if (run.problem !== null) return <Problem of={run.problem} />;
  if (run.shown === 'parked' && run.limit?.until !== null && run.limit !== null)
    return (
      <>
        usage limit of {line(run.limit.adapter ?? 'its agents', 40)} · goes on at{' '}
        <b class="num">{moment(Date.parse(run.limit.until), now.peek())}</b>
      </>
    );
  if (run.now !== null) return <>{line(run.now)}</>;
  return <span class="dim">{statusWord(run.shown)}</span>;
}

function Problem({ of: { message, hint } }: { readonly of: NonNullable<FleetRun['problem']> }) {
  return (
    <span class="bad-text">
      {line(message)}
      {hint !== null && <small> {line(hint)}</small>}
    </span>
  );
}

function Result({ of: { run } }: { readonly of: ShownRun }) {
  const { counts, error } = run;
  return (
    <span data-counts={counts === null ? undefined : JSON.stringify(counts)}>
      {error === null ? (
        resultText(run)
      ) : (
        <>
          failed
          {error.step !== null && (
            <>
              {' '}
              at <span class="m">{line(error.step, 80)}</span>
            </>
          )}
          : {line(error.message, 200)}
        </>
      )}
    </span>
  );
}

function resultText({ counts, shown }: FleetRun): string {
  if (counts === null) return statusWord(shown);
  const done = `${numeral(counts.done)} done`;
  return shown === 'done' ? done : `${statusWord(shown)}, ${done}`;
}

export function keyOf({ project, id }: FleetRun): string {
  return `${project}/${id}`;
}
