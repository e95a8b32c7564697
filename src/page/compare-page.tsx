// Two runs side by side: what differs in their programs, variables, steps, outputs, time and cost.

import type { Json } from '../base/json.ts';
import type { FleetRun } from '../view/fleet.ts';
import { type ComparedStep, comparedSteps, runDiff, type SideOfStep } from '../view/run-diff.ts';
import { countsOf, runStatus } from '../view/status.ts';
import { shownSteps } from '../view/cause.ts';
import { runDuration } from '../view/usage.ts';
import type { RunName } from '../web/protocol.ts';
import { compareAddress, runAddress } from './addresses.ts';
import { now } from './clock.ts';
import { CountsBar } from './counts-bar.tsx';
import { isFound } from './find.ts';
import { fleet, pageTitle } from './fleet-store.ts';
import { StatusIcon, statusWord, toneOf } from './icons.tsx';
import { MessagePart } from './message-page.tsx';
import { amountText } from './money.tsx';
import { useRun } from './open-run.ts';
import { navigate } from './router.ts';
import type { RunPicture, RunStore } from './run-store.ts';
import { dollars, duration, line, numeral } from './shown-text.ts';

/** More steps are counted; those that differ come first. */
const ROWS_MAX = 300;

export function ComparePage({ a, b }: { readonly a: RunName | null; readonly b: RunName | null }) {
  pageTitle.value = 'Compare';
  return (
    <main class="cmp">
      <h1 class="unseen">Compare two runs</h1>
      <div class="vs">
        <RunChoice label="First run" chosen={a} choose={(run) => navigate(compareAddress(run, b))} />
        <RunChoice
          label="Second run"
          chosen={b}
          choose={(run) => navigate(a === null ? compareAddress(run, null) : compareAddress(a, run))}
        />
      </div>
      {a === null || b === null ? (
        <p class="card quiet">Choose two runs: two attempts at the same thing, or a run and its fork.</p>
      ) : (
        <Compared key={`${nameOf(a)} ${nameOf(b)}`} a={a} b={b} />
      )}
    </main>
  );
}

function nameOf({ project, run }: RunName): string {
  return `${project}/${run}`;
}

interface RunChoiceProps {
  readonly label: string;
  readonly chosen: RunName | null;
  readonly choose: (run: RunName) => void;
}

function RunChoice({ label, chosen, choose }: RunChoiceProps) {
  const runs: readonly FleetRun[] = fleet.value?.runs ?? [];
  const names = runs.map(({ project, id }) => ({ project, run: id }));
  const isListed = names.some((name) => chosen !== null && nameOf(name) === nameOf(chosen));
  const listed = chosen === null || isListed ? names : [chosen, ...names];
  return (
    <select
      aria-label={label}
      class="b"
      value={chosen === null ? '' : nameOf(chosen)}
      onChange={({ currentTarget }) => {
        const name = listed.find((each) => nameOf(each) === currentTarget.value);
        if (name !== undefined) choose(name);
      }}
    >
      {chosen === null && <option value="">Choose a run</option>}
      {listed.map((name) => (
        <option key={nameOf(name)} value={nameOf(name)}>
          {line(nameOf(name), 80)}
        </option>
      ))}
    </select>
  );
}

function Compared({ a, b }: { readonly a: RunName; readonly b: RunName }) {
  const [one, other] = [useRun(a), useRun(b)];
  const problem = problemOf(a, one) ?? problemOf(b, other);
  if (problem !== null) {
    return (
      <MessagePart title="These runs cannot be compared">
        <p>{problem}</p>
      </MessagePart>
    );
  }
  const [left, right] = [one.picture.value, other.picture.value];
  if (left === null || right === null) return <p class="dim">Reading both runs</p>;
  return <Difference a={a} b={b} left={left} right={right} />;
}

function problemOf(of: RunName, store: RunStore): string | null {
  const { value } = store.problem;
  if (value === null || store.picture.value !== null) return null;
  return line(`${of.run}: ${value.message}${value.cure === null ? '' : ` (${value.cure})`}`);
}

interface DifferenceProps {
  readonly a: RunName;
  readonly b: RunName;
  readonly left: RunPicture;
  readonly right: RunPicture;
}

function Difference({ a, b, left, right }: DifferenceProps) {
  // Not `now.value`: durations of active runs are measured when a record arrives.
  const at = now.peek();
  const diff = runDiff(left.state, right.state, at);
  const steps = comparedSteps(left.state, right.state, at).filter(({ step }) => isFound([step]));
  const shown = [...steps.filter(({ differs }) => differs), ...steps.filter(({ differs }) => !differs)];
  const longest = Math.max(1, ...steps.flatMap((step) => [step.a?.duration_ms ?? 0, step.b?.duration_ms ?? 0]));
  const parts = steps.find(({ differs }) => differs);
  const outputs = new Map<string, readonly string[]>();
  for (const { step, output } of diff.outputs) outputs.set(step, [...(outputs.get(step) ?? []), output]);
  return (
    <>
      <div class="vs">
        <Side of={a} picture={left} />
        <Side of={b} picture={right} />
      </div>
      <div class="dim" role="status" aria-label="Difference">
        {diff.program.same ? 'Same program' : 'Different programs'} ·{' '}
        {diff.variables.length === 0 ? 'same variables' : 'variables differ: '}
        {diff.variables.map(({ variable, a: before, b: after }, index) => (
          <span key={variable}>
            {index > 0 && ', '}
            <span class="m">{line(variable, 60)}</span> {shownValue(before)} → {shownValue(after)}
          </span>
        ))}
        {parts === undefined ? (
          ' · all steps have the same status and outputs'
        ) : (
          <>
            {' '}
            · they part at <b>{line(parts.step, 120)}</b>
          </>
        )}
      </div>
      <div class="card">
        <table role="table">
          <thead role="rowgroup">
            <tr role="row">
              {['Step', line(a.run, 40), line(b.run, 40), 'Cost', 'Time', 'Difference'].map((title, index) => (
                <th key={index} role="columnheader" scope="col" class={title === 'Cost' ? 'r' : undefined}>
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody role="rowgroup">
            {shown.slice(0, ROWS_MAX).map((step) => (
              <StepRow key={step.step} of={step} outputs={outputs.get(step.step) ?? []} longest={longest} a={a} b={b} />
            ))}
          </tbody>
        </table>
        {shown.length > ROWS_MAX && <p class="quiet dim">{numeral(shown.length - ROWS_MAX)} more steps</p>}
      </div>
    </>
  );
}

function Side({ of, picture: { state } }: { readonly of: RunName; readonly picture: RunPicture }) {
  const status = runStatus(state);
  const counts = countsOf(shownSteps(state));
  const took = runDuration(state, now.peek());
  const total = Object.values(counts).reduce((sum, count) => sum + count, 0);
  return (
    <div class="card" data-status={status}>
      <div class="l1">
        <StatusIcon status={status} label="" />
        <a class="cut" href={runAddress(of)}>
          <b>{line(of.run)}</b>
        </a>
        <span class={`pill ${toneOf(status)}`}>{statusWord(status)}</span>
        <span class="grow" />
        <span class="num dim">
          {took === null ? '' : `${duration(took)} · `}
          {amountText(state.cost)} · {numeral(total)} steps
        </span>
      </div>
      <CountsBar counts={counts} />
    </div>
  );
}

interface StepRowProps {
  readonly of: ComparedStep;
  readonly outputs: readonly string[];
  readonly longest: number;
  readonly a: RunName;
  readonly b: RunName;
}

function StepRow({ of: { step, a, b, differs }, outputs, longest, a: runA, b: runB }: StepRowProps) {
  return (
    <tr role="row" data-step={step} data-item tabIndex={-1} aria-label={line(step)}>
      <td role="cell" class="m c-run">
        {line(step, 120)}
      </td>
      <SideCell of={a} run={runA} step={step} />
      <SideCell of={b} run={runB} step={step} />
      <td role="cell" class="r num c-proj">
        <CostChange a={a} b={b} />
      </td>
      <td role="cell" class="c-bar">
        <div class="pair" aria-hidden="true">
          <i style={{ width: `${(100 * (a?.duration_ms ?? 0)) / longest}%` }} />
          <i style={{ width: `${(100 * (b?.duration_ms ?? 0)) / longest}%` }} />
        </div>
      </td>
      <td role="cell" class={differs ? 'c-now' : 'c-now dim'}>
        {differs ? <b>{differenceText(a, b, outputs)}</b> : 'same status and outputs'}
      </td>
    </tr>
  );
}

function SideCell({ of, run, step }: { readonly of: SideOfStep | null; readonly run: RunName; readonly step: string }) {
  if (of === null) {
    return (
      <td role="cell" class="faint">
        —
      </td>
    );
  }
  return (
    <td role="cell" data-status={of.status}>
      <StatusIcon status={of.status} />{' '}
      <a class="num" href={runAddress(run, 'timeline', { step })}>
        {of.duration_ms === null ? statusWord(of.status) : duration(of.duration_ms)}
      </a>
      {of.attempt > 1 && <span class="faint"> attempt {of.attempt}</span>}
    </td>
  );
}

function CostChange({ a, b }: { readonly a: SideOfStep | null; readonly b: SideOfStep | null }) {
  const [before, after] = [a?.cost?.usd ?? null, b?.cost?.usd ?? null];
  if (before === null || after === null || before === after) return null;
  const change = after - before;
  return <span class={change > 0 ? 'up' : 'down'}>{`${change > 0 ? '+' : '−'}${dollars(Math.abs(change))}`}</span>;
}

function differenceText(a: SideOfStep | null, b: SideOfStep | null, outputs: readonly string[]): string {
  if (a === null) return 'only in the second run';
  if (b === null) return 'only in the first run';
  const status = a.status === b.status ? [] : [`${statusWord(a.status)} → ${statusWord(b.status)}`];
  const other =
    outputs.length === 0
      ? []
      : [
          `other ${outputs
            .slice(0, 4)
            .map((name) => line(name, 40))
            .join(', ')}`,
        ];
  return [...status, ...other].join('; ');
}

function shownValue(value: Json): string {
  return line(typeof value === 'string' ? `“${value}”` : JSON.stringify(value), 80);
}
