// Why a step has its status, what it needs, and what needs it.

import type { StepState } from '../../kernel/state.ts';
import { resolveNeeds } from '../../view/needed.ts';
import { shownStepStatus } from '../../view/shown-status.ts';
import { whyView } from '../../view/why.ts';
import { runAddress } from '../addresses.ts';
import { StatusIcon } from '../icons.tsx';
import { line, numeral, text, withLocalTimes } from '../shown-text.ts';
import { useRunShown } from './run-shown.ts';

const LISTED_MAX = 100;

export function WhyTab({ step }: { readonly step: StepState }) {
  const { state, interrupted } = useRunShown();
  const because = whyView(state, step.id, interrupted)?.because ?? [];
  const needed = [...new Set(resolveNeeds(state, step).flatMap(({ steps }) => steps))];
  const owner = step.frame.owner === null ? undefined : state.steps.get(step.frame.owner);
  return (
    <div class="scroll details">
      <ul class="because">
        {because.map((sentence, index) => (
          <li key={index}>{withLocalTimes(sentence, Date.now())}</li>
        ))}
      </ul>
      {step.failure?.output !== null && step.failure?.output !== undefined && (
        <pre class="text" tabIndex={0} aria-label="Last output">
          {text(step.failure.output)}
        </pre>
      )}
      <Steps title="It needs" steps={needed} />
      <Steps title="Needed by" steps={[...new Set(step.waiters)]} />
      {owner !== undefined && <Steps title="It grew from" steps={[owner]} />}
    </div>
  );
}

function Steps({ title, steps }: { readonly title: string; readonly steps: readonly StepState[] }) {
  const { of, state, selection } = useRunShown();
  if (steps.length === 0) return null;
  return (
    <section>
      <h3>{title}</h3>
      <ul class="links">
        {steps.slice(0, LISTED_MAX).map((other) => (
          <li key={other.id}>
            <StatusIcon status={shownStepStatus(state, other)} />
            <a class="m" href={runAddress(of, 'timeline', { ...selection, step: other.id, attempt: null, line: null })}>
              {line(other.id)}
            </a>
          </li>
        ))}
        {steps.length > LISTED_MAX && <li class="dim">and {numeral(steps.length - LISTED_MAX)} more</li>}
      </ul>
    </section>
  );
}
