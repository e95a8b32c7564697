// What a visit changed in the run's worktree.

import type { StepState } from '../../kernel/state.ts';
import { type DiffDocument, runDataPath } from '../../web/protocol.ts';
import { Diff } from '../diff.tsx';
import { exported } from '../exported.ts';
import { line } from '../shown-text.ts';
import { LoadedPart } from './loaded-part.tsx';
import { useRunShown } from './run-shown.ts';
import { useDocument } from './use-document.ts';

export function DiffTab({ step }: { readonly step: StepState }) {
  const { of } = useRunShown();
  const path = exported === null ? runDataPath(of, 'diff', { step: step.id }) : null;
  const loaded = useDocument<DiffDocument>(path, `${step.attempt} ${step.status}`);
  if (path === null) return <p class="empty">A saved file has no differences: they are in the run's worktree.</p>;
  return (
    <LoadedPart loaded={loaded}>
      {({ text, truncated, message }) =>
        text === null ? (
          <p class="empty">{line(message ?? 'There is nothing to compare.')}</p>
        ) : (
          <div class="scroll details">
            <Diff text={text} />
            {truncated && <p class="dim">The difference is longer than is shown here.</p>}
          </div>
        )
      }
    </LoadedPart>
  );
}
