// What the drawer shows of a step: what it is, why it has its status, its attempts, and its details in tabs.

import type { StepState } from '../../kernel/state.ts';
import { openGates } from '../../view/status.ts';
import { shownStepStatus } from '../../view/shown-status.ts';
import type { Span } from '../../view/spans.ts';
import { costText, stepCost } from '../../view/usage.ts';
import { whyView } from '../../view/why.ts';
import { STEP_TABS, type StepTab } from '../addresses.ts';
import { StatusIcon } from '../icons.tsx';
import { select } from '../router.ts';
import { age, duration, line, withLocalTimes } from '../shown-text.ts';
import { CostTab } from './cost-tab.tsx';
import { DiffTab } from './diff-tab.tsx';
import { OpenGateCard } from './gate-card.tsx';
import { OutputTab } from './output-tab.tsx';
import { OutputsTab } from './outputs-tab.tsx';
import { PromptTab } from './prompt-tab.tsx';
import { RecordTab } from './record-tab.tsx';
import { shownTime, useRunShown } from './run-shown.ts';
import { WhyTab } from './why-tab.tsx';

export function StepDetails({ id }: { readonly id: string }) {
  const { state, isLive } = useRunShown();
  const step = state.steps.get(id);
  if (step !== undefined) return <Details step={step} />;
  return (
    <div class="dh">
      <h2>
        <span class="id">{line(id)}</span> <CloseButton />
      </h2>
      <p>{isLive ? 'This run has no such step.' : 'At this record the run has no such step.'}</p>
    </div>
  );
}

function CloseButton() {
  return (
    <button
      type="button"
      class="b s quiet"
      aria-label="esc: close the step"
      onClick={() => select({ step: null, tab: null })}
    >
      esc
    </button>
  );
}

function Details({ step }: { readonly step: StepState }) {
  const run = useRunShown();
  const { state, selection, interrupted } = run;
  const tab = selection.tab ?? 'output';
  const [first = '', ...others] = whyView(state, step.id, interrupted)?.because ?? [];
  const status = shownStepStatus(state, step);
  const gate = openGates(state).find((open) => open.step === step.id);
  return (
    <>
      <div class="dh">
        <h2>
          <StatusIcon status={status} />
          <span class="id" dir="auto">
            {line(step.id)}
          </span>
          <span class="grow" />
          <span class="chip">
            {line(step.definition.executor)}
            {step.agent !== null && ` · ${line(step.agent)}`}
          </span>
          <CloseButton />
        </h2>
        <p class="why">
          {withLocalTimes(first, shownTime(run))}
          {others[0] !== undefined && <span class="dim"> {withLocalTimes(others[0], shownTime(run))}</span>}
        </p>
        <Attempts step={step} />
        {gate !== undefined && <OpenGateCard gate={gate} brief />}
      </div>
      <Tabs tab={tab} />
      <div class="tabpanel" role="tabpanel" id="step-panel" aria-labelledby={`tab-${tab}`}>
        <Panel step={step} tab={tab} />
      </div>
    </>
  );
}

function Attempts({ step }: { readonly step: StepState }) {
  const run = useRunShown();
  const { spans, seq, selection } = run;
  const attempts = spans.of(step.id, seq).filter(({ kind }) => kind === 'attempt');
  const cost = stepCost(step);
  const shown = selection.attempt ?? step.attempt;
  if (attempts.length === 0 && cost === null) return null;
  const time = shownTime(run);
  return (
    <div class="atts">
      {attempts.map((span) => (
        <button
          key={`${span.attempt} ${span.from}`}
          type="button"
          class="att"
          aria-current={span.attempt === shown ? 'true' : undefined}
          aria-label={`Attempt ${span.attempt} ${spanTime(span, time)}, ${endOf(span)}`}
          onClick={() => select({ attempt: span.attempt === step.attempt ? null : span.attempt, line: null })}
        >
          <StatusIcon status={endOf(span)} label="" />
          {span.attempt} <span class="num">{spanTime(span, time)}</span>
        </button>
      ))}
      <span class="grow" />
      {cost !== null && <span class="att">{costText(cost)}</span>}
    </div>
  );
}

function spanTime({ from, to }: Span, time: number): string {
  return to === null ? age(time - from) : duration(to - from);
}

function endOf({ end, to }: Span): string {
  if (to === null) return 'running';
  return end === null || end === 'lost' || end === 'stopped' ? 'stopped' : end;
}

function Tabs({ tab }: { readonly tab: StepTab }) {
  const move = (event: KeyboardEvent): void => {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    const next = STEP_TABS[(STEP_TABS.indexOf(tab) + by + STEP_TABS.length) % STEP_TABS.length] ?? tab;
    select({ tab: next });
    document.querySelector<HTMLElement>(`#tab-${next}`)?.focus();
  };
  return (
    <div class="tabs steptabs" role="tablist" aria-label="Step" onKeyDown={move}>
      {STEP_TABS.map((name) => (
        <button
          key={name}
          id={`tab-${name}`}
          type="button"
          role="tab"
          aria-selected={name === tab}
          aria-controls="step-panel"
          tabIndex={name === tab ? 0 : -1}
          onClick={() => select({ tab: name, line: null })}
        >
          {name.slice(0, 1).toUpperCase()}
          {name.slice(1)}
        </button>
      ))}
    </div>
  );
}

function Panel({ step, tab }: { readonly step: StepState; readonly tab: StepTab }) {
  switch (tab) {
    case 'output':
      return <OutputTab step={step} />;
    case 'prompt':
      return <PromptTab step={step} />;
    case 'outputs':
      return <OutputsTab step={step} />;
    case 'why':
      return <WhyTab step={step} />;
    case 'diff':
      return <DiffTab step={step} />;
    case 'cost':
      return <CostTab step={step} />;
    case 'record':
      return <RecordTab step={step} />;
  }
}
