// The prompt, command or question of a step, as it was filled in.

import type { StepState } from '../../kernel/state.ts';
import { startedEffect, stepEffect } from '../../view/step-effect.ts';
import { type FilledTextDocument, type PromptDocument, runDataPath } from '../../web/protocol.ts';
import { exported } from '../exported.ts';
import { line } from '../shown-text.ts';
import { LoadedPart } from './loaded-part.tsx';
import { LongText } from './long-text.tsx';
import { useRunShown } from './run-shown.ts';
import { useDocument } from './use-document.ts';

export function PromptTab({ step }: { readonly step: StepState }) {
  return exported === null ? <Asked step={step} /> : <Recorded step={step} />;
}

function Asked({ step }: { readonly step: StepState }) {
  const { of, selection } = useRunShown();
  const path = runDataPath(of, 'prompt', { step: step.id, attempt: selection.attempt });
  const loaded = useDocument<PromptDocument>(path, step.attempt);
  return <LoadedPart loaded={loaded}>{({ texts }) => <Texts texts={texts} />}</LoadedPart>;
}

/** Of the latest attempt, in an exported file. */
function Recorded({ step }: { readonly step: StepState }) {
  const { records, seq } = useRunShown();
  const asks = stepEffect(step, startedEffect(step.id, records.slice(0, seq)));
  return <Texts texts={asks === null ? [] : [{ name: asks.kind, text: asks.text, problem: null }]} />;
}

function Texts({ texts }: { readonly texts: readonly FilledTextDocument[] }) {
  if (texts.length === 0) return <p class="empty">It has no prompt and no command: other steps do its work.</p>;
  return (
    <div class="scroll details">
      {texts.map(({ name, text, problem }) => (
        <section key={name}>
          <h3>{line(name)}</h3>
          {problem !== null && <p class="dim">{line(problem)}</p>}
          <LongText text={text} label={name} />
        </section>
      ))}
    </div>
  );
}
