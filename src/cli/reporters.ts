// How `meow run` reports a run: as lines, as JSON objects, or as a live tree.

import type { Reporter, RunState } from '../app/observer.ts';
import type { Palette } from '../view/row.ts';
import { runStatus } from '../view/status.ts';
import { summaryLines } from '../view/summary-lines.ts';
import { renderTimelineLine } from '../view/timeline-lines.ts';
import { decisionJson, Timeline } from '../view/timeline.ts';
import { treeLines } from '../view/tree-lines.ts';
import { printJson, printLine, warn } from './output.ts';
import { Redraw } from './redraw.ts';
import { paletteFor, terminalSize } from './terminal.ts';

const ID_WIDTH_MAX = 24;

/** A line for each change, for pipes, files and CI. Only `meow trace` shows the parts of a step that a block performs. */
export function plainReporter(palette: Palette = paletteFor(process.stdout)): Reporter {
  const timeline = new Timeline();
  let idWidth = 0;
  return {
    open({ id }, before) {
      printLine(id);
      for (const record of before) timeline.lines(record);
    },
    observe(records, state) {
      const isShown = (step: string | null): boolean => step === null || state.steps.get(step)?.frame.isInner !== true;
      const clock = { kind: 'elapsed', startedAt: state.startedAt ?? 0 } as const;
      const decisions = records.flatMap((record) => record.decisions);
      const added = decisions.flatMap((decision) => (decision.kind === 'steps-added' ? decision.steps : []));
      for (const id of added.filter(isShown)) idWidth = Math.max(idWidth, Math.min(id.length, ID_WIDTH_MAX));
      for (const record of records) {
        const lines = timeline.lines(record);
        // The closing words say the same, and more.
        const shown = record.decisions.some(({ kind }) => kind === 'run-ended') ? lines.slice(0, -1) : lines;
        for (const line of shown.filter(({ step }) => isShown(step)))
          printLine(renderTimelineLine(line, clock, idWidth, palette));
      }
    },
    ...WARNING,
    end(state, _exit, work) {
      for (const line of summaryLines(state, palette, work)) printLine(line);
    },
  };
}

/** Remarks go to stderr at once, so there is nothing to restore. */
const WARNING = {
  note: (line: string) => warn(`meow: ${line}`),
  warn: (line: string) => warn(`meow: ${line}`),
  abandon() {},
};

/** An object for each decision, and a last one with how the run ended. */
export function jsonReporter(): Reporter {
  let run = '';
  return {
    open({ id }) {
      run = id;
    },
    observe(records) {
      for (const record of records) for (const object of decisionJson(record, run)) printJson(object);
    },
    ...WARNING,
    end(state, exit) {
      printJson({ kind: 'run-ended', id: run, status: runStatus(state), exit });
    },
  };
}

// The live tree on a terminal. Its last state stays on the screen, with what to do next below it.

/** More steps than these are summed up in the last picture too. */
const LAST_LINES_MAX = 500;

export function treeReporter(): Reporter {
  const terminal = process.stdout;
  const palette = paletteFor(terminal);
  let state: RunState | null = null;
  let note: string | null = null;
  const lines = (size: { readonly width: number; readonly height: number }, closing = false): readonly string[] => {
    if (state === null) return [];
    const noted = note === null ? [] : [palette.yellow(note.slice(0, size.width))];
    const height = size.height - noted.length;
    const options = { ...size, height, now: Date.now(), interrupted: false, palette, ascii: isAscii(), closing };
    return [...treeLines(state, options), ...noted];
  };
  let redraw: Redraw | null = null;
  const warnings: string[] = [];
  const printWarnings = (): void => {
    for (const line of warnings.splice(0)) warn(`meow: ${line}`);
  };
  return {
    open(run) {
      state = run.state;
      redraw = new Redraw({ lines, moves: () => state !== null && moves(state), settled: () => run.durable }, terminal);
    },
    observe(_records, now) {
      state = now;
      redraw?.changed();
    },
    note(line) {
      note = line;
      redraw?.changed();
    },
    // Printed below the tree once it is no longer redrawn.
    warn: (line) => void warnings.push(line),
    end(ended, _exit, work) {
      note = null;
      state = ended;
      const { columns, rows } = terminalSize(terminal);
      const height = ended.steps.size > LAST_LINES_MAX ? rows - 1 : Infinity;
      redraw?.close(lines({ width: columns, height }, true));
      for (const line of summaryLines(ended, palette, work).slice(1)) printLine(line);
      printWarnings();
    },
    abandon() {
      redraw?.close(null);
      printWarnings();
    },
  };
}

/** Something runs, or waits for a moment that is shown. */
export function moves(state: RunState): boolean {
  if (state.phase === 'ended') return false;
  for (const { effect } of state.inFlight.values()) if (effect?.kind !== 'gate') return true;
  return state.cleanup !== null || state.timers.size > 0;
}

/** Whether the environment says that the terminal shows only ASCII. */
export function isAscii(): boolean {
  const { LC_ALL, LC_CTYPE, LANG, TERM } = process.env;
  const locale = LC_ALL || LC_CTYPE || LANG || '';
  return TERM === 'linux' || (locale !== '' && !/utf-?8/i.test(locale));
}
