// A line for each change, for pipes, files and CI. A step that a block performs is one step here; `meow trace` shows its parts.

import type { JournalRecord, RunState } from '../../app/observer.ts';
import { summaryLines } from '../../view/summary-lines.ts';
import { plainPalette } from '../../view/palette.ts';
import { Timeline } from '../../view/timeline.ts';
import { renderTimelineLine } from '../../view/timeline-lines.ts';
import { warn, printLine } from '../output.ts';
import type { Reporter } from '../../app/observer.ts';

const ID_WIDTH_MAX = 24;

export function plainReporter(): Reporter {
  const timeline = new Timeline();
  let idWidth = 0;
  return {
    open({ id }, before) {
      printLine(id);
      for (const record of before) timeline.lines(record);
    },
    observe(records, state) {
      const isShown = (step: string | null): boolean => step === null || state.steps.get(step)?.frame.isInner !== true;
      for (const id of addedIds(records).filter(isShown))
        idWidth = Math.max(idWidth, Math.min(id.length, ID_WIDTH_MAX));
      for (const record of records) {
        const lines = timeline.lines(record);
        // The closing words say the same, and more.
        const shown = record.decisions.some(({ kind }) => kind === 'run-ended') ? lines.slice(0, -1) : lines;
        for (const line of shown.filter(({ step }) => isShown(step)))
          printLine(renderTimelineLine(line, clockOf(state), idWidth, plainPalette));
      }
    },
    note: (line) => warn(`meow: ${line}`),
    warn: (line) => warn(`meow: ${line}`),
    end(state) {
      for (const line of summaryLines(state, plainPalette)) printLine(line);
    },
    abandon() {},
  };
}

function clockOf({ startedAt }: RunState): { readonly kind: 'elapsed'; readonly startedAt: number } {
  return { kind: 'elapsed', startedAt: startedAt ?? 0 };
}

function addedIds(records: readonly JournalRecord[]): readonly string[] {
  return records.flatMap(({ decisions }) =>
    decisions.flatMap((decision) => (decision.kind === 'steps-added' ? decision.steps : [])),
  );
}
