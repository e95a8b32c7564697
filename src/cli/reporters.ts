// How `meow run` reports a run: as lines, as JSON objects, or as a live tree.

import type { Reporter, RunState } from '../app/observer.ts';
import { sanitize } from '../base/sanitize.ts';
import { type Palette, plainPalette } from '../view/row.ts';
import { gateCommand, openGates, runStatus } from '../view/status.ts';
import { summaryLines } from '../view/summary.ts';
import { decisionJson, renderTimelineLine, Timeline } from '../view/timeline.ts';
import { treeLines } from '../view/tree-lines.ts';
import { printJson, printLine, ringBell, warn } from './output.ts';
import { Redraw } from './redraw.ts';
import { paletteFor, terminalSize } from './terminal.ts';

const ID_WIDTH_MAX = 24;

/** Lines about the work of a run, for the person who decides its gates. */
export type DescribeWork = (state: RunState, palette: Palette) => Promise<readonly string[]>;

const NO_WORK: DescribeWork = () => Promise.resolve([]);

/** A run must not end because its work cannot be described at a gate. The end of the run reports the error. */
const ignore = (): void => {};

/** A line for each change, for pipes, files and CI. Only `meow trace` shows the parts of a step that a block performs. */
export function plainReporter(
  palette: Palette = paletteFor(process.stdout),
  describeWork: DescribeWork = NO_WORK,
): Reporter {
  const timeline = new Timeline();
  let idWidth = 0;
  const printWork = async (state: RunState): Promise<void> => {
    const lines = await describeWork(state, palette);
    // The closing words name the work too.
    if (state.phase === 'running' && openGates(state).length > 0) for (const line of lines) printLine(`  ${line}`);
  };
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
      const asked = new Set(decisions.flatMap((decision) => (decision.kind === 'gate-asked' ? [decision.gate] : [])));
      const gates = state.phase === 'running' ? openGates(state).filter(({ id }) => asked.has(id)) : [];
      const run = state.request?.id ?? '';
      for (const gate of gates) printLine(`  ${palette.dim('decide:')} ${sanitize(gateCommand(run, gate))}`);
      if (gates.length > 0) printWork(state).catch(ignore);
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
  bell: ringBell,
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

export function treeReporter(describeWork: DescribeWork): Reporter {
  const terminal = process.stdout;
  const palette = paletteFor(terminal);
  let state: RunState | null = null;
  let note: string | null = null;
  const work = new GateWork(describeWork, () => redraw?.changed());
  const lines = (size: { readonly width: number; readonly height: number }, closing = false): readonly string[] => {
    if (state === null) return [];
    const noted = note === null ? [] : [palette.yellow(note.slice(0, size.width))];
    const height = size.height - noted.length;
    const options = { ...size, height, now: Date.now(), interrupted: false, palette, ascii: isAscii(), closing };
    return [...treeLines(state, { ...options, work: closing ? [] : work.lines }), ...noted];
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
      work.refresh(now);
    },
    note(line) {
      note = line;
      redraw?.changed();
    },
    // Printed below the tree once it is no longer redrawn.
    warn: (line) => void warnings.push(line),
    bell: ringBell,
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

/** The work that open gates decide on, for a picture that is redrawn. */
export class GateWork {
  /** Where it is, and how to see it. */
  lines: readonly string[] = [];
  /** The gates that are open, with their times. */
  #gates = '';
  readonly #describe: DescribeWork;
  readonly #changed: () => void;

  constructor(describe: DescribeWork, changed: () => void) {
    this.#describe = describe;
    this.#changed = changed;
  }

  /** Looks at the work only if other gates are open than before. */
  refresh(state: RunState): void {
    const open = openGates(state).map(({ id, opened_at: at }) => `${id} ${at}`);
    const gates = open.join('\n');
    if (gates === this.#gates) return;
    this.#gates = gates;
    this.lines = [];
    if (gates !== '') this.#look(state, gates).catch(ignore);
  }

  async #look(state: RunState, gates: string): Promise<void> {
    const lines = await this.#describe(state, plainPalette);
    if (gates !== this.#gates) return;
    this.lines = lines.slice(0, WORK_LINES_MAX);
    this.#changed();
  }
}

const WORK_LINES_MAX = 2;

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
