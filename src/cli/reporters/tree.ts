// The live tree on a terminal. Its last state stays on the screen, with what to do next below it.

import type { RunState } from '../../app/observer.ts';
import { summaryLines } from '../../view/summary-lines.ts';
import { treeLines } from '../../view/tree-lines.ts';
import { paletteFor, terminalSize } from '../terminal.ts';
import { Redraw } from '../redraw.ts';
import { warn, printLine } from '../output.ts';
import type { Reporter } from '../../app/observer.ts';

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
    return [...treeLines(state, { ...size, height, now: Date.now(), palette, ascii: isAscii(), closing }), ...noted];
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
    end(ended) {
      note = null;
      state = ended;
      const { columns, rows } = terminalSize(terminal);
      const height = ended.steps.size > LAST_LINES_MAX ? rows - 1 : Infinity;
      redraw?.close(lines({ width: columns, height }, true));
      for (const line of summaryLines(ended, palette).slice(1)) printLine(line);
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

/** Whether the terminal was said to know no other characters. */
export function isAscii(): boolean {
  const { LC_ALL, LC_CTYPE, LANG, TERM } = process.env;
  const locale = LC_ALL || LC_CTYPE || LANG || '';
  return TERM === 'linux' || (locale !== '' && !/utf-?8/i.test(locale));
}
