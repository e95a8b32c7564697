// The head of a run's page: its status and why, how far it is, how long it has taken, what it cost, who works on it.

import { shownRunStatus, shownStepStatus } from '../../view/shown-status.ts';
import { countsOf, openGates, runError } from '../../view/status.ts';
import { shownSteps } from '../../view/cause.ts';
import { nowText } from '../../view/now.ts';
import { STATUS_ORDER } from '../../view/run-rows.ts';
import { runDuration } from '../../view/usage.ts';
import { runAddress } from '../addresses.ts';
import { CountsBar, type ShownCounts } from '../counts-bar.tsx';
import { StatusIcon, statusWord, toneOf } from '../icons.tsx';
import { dollars, duration, line, numeral, tokens } from '../shown-text.ts';
import { type RunShown, shownTime, useRunShown } from './run-shown.ts';
import { Steering } from './steering.tsx';

export function RunHead() {
  const run = useRunShown();
  const { of, state, interrupted } = run;
  const status = shownRunStatus(state, interrupted);
  const waiting = openGates(state).length;
  return (
    <section class="rhead" aria-label="Run">
      <div class="l1">
        <StatusIcon status={status} label="" />
        <h1 dir="auto">{line(of.run)}</h1>
        <span class={`pill ${toneOf(status)}`} data-status={status}>
          {statusWord(status)}
        </span>
        {waiting > 0 && (
          <a class="pill you" href={runAddress(of, 'gates', run.selection)}>
            <StatusIcon status="waiting" label="" />
            {waiting} {waiting === 1 ? 'waits' : 'wait'} for you
          </a>
        )}
        <span class="dim source">
          {line(state.program.source.name)} <span class="faint">· {line(of.project)}</span>
        </span>
        <Steering />
      </div>
      <Facts run={run} />
      <Cause run={run} />
    </section>
  );
}

function Facts({ run }: { readonly run: RunShown }) {
  const { state, engine, isLive } = run;
  const counts = countsOf(shownSteps(state));
  const took = runDuration(state, shownTime(run));
  return (
    <div class="facts" data-counts={JSON.stringify(counts)}>
      <CountsBar counts={shownCounts(run)} />
      <span class="num">
        <CountsText counts={shownCounts(run)} />
      </span>
      {took !== null && (
        <span>
          {state.phase === 'ended' ? 'took' : 'since'} <b class="num">{duration(took)}</b>
        </span>
      )}
      <Spent run={run} />
      {isLive && (
        <span>
          engine <b>{engine === null ? 'none' : 'at work'}</b>
          {engine !== null && <span class="faint"> pid {engine.pid}</span>}
        </span>
      )}
    </div>
  );
}

/** As people see them: a step that waits for them is not just running. */
function shownCounts({ state }: RunShown): ShownCounts {
  const counts: Partial<Record<string, number>> = {};
  for (const step of shownSteps(state)) {
    const status = shownStepStatus(state, step);
    counts[status] = (counts[status] ?? 0) + 1;
  }
  return counts;
}

function CountsText({ counts }: { readonly counts: ShownCounts & { readonly skipped?: number } }) {
  const shown = STATUS_ORDER.flatMap((status) => {
    const count = counts[status] ?? 0;
    return count === 0 ? [] : [{ status, count }];
  });
  if (shown.length === 0) return <>no steps yet</>;
  return (
    <>
      {shown.map(({ status, count }, index) => (
        <span key={status}>
          {index > 0 && ' · '}
          <b class={`c-${toneOf(status)}`}>{numeral(count)}</b> {status}
        </span>
      ))}
    </>
  );
}

function Spent({ run: { state } }: { readonly run: RunShown }) {
  const { usd, tokens: used, unpriced } = state.cost;
  if (usd === 0 && used === 0 && unpriced === 0) return null;
  const limit = state.allowance.usd;
  return (
    <span>
      spent{' '}
      <b class="num">
        {unpriced > 0 && '≥ '}
        {dollars(usd)}
      </b>
      {limit !== null && ` of ${dollars(limit)}`}
      {used > 0 && (
        <>
          {' · '}
          <b class="num">{tokens(used)}</b> tokens
        </>
      )}
    </span>
  );
}

/** Why it failed, or what it does now. */
function Cause({ run: { of, state, interrupted, selection } }: { readonly run: RunShown }) {
  const error = runError(state);
  if (error !== null) {
    return (
      <p class="cause bad">
        {error.step !== null && (
          <>
            <a class="m" href={runAddress(of, 'timeline', { ...selection, step: error.step })}>
              {line(error.step)}
            </a>
            {': '}
          </>
        )}
        {line(error.message)}
      </p>
    );
  }
  if (state.phase === 'ended' && state.reason !== null) return <p class="cause">{line(state.reason)}</p>;
  if (interrupted) {
    const last = state.recordedAt;
    const since = last === null ? '' : ` since ${new Date(last).toLocaleTimeString('en-GB')}`;
    return <p class="cause">No engine works on it{since}. Resume continues it where it left off.</p>;
  }
  const now = nowText(state, false);
  return now === null ? null : <p class="cause">{line(now)}</p>;
}
