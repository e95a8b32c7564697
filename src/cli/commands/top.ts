// `meow top`: all runs of this machine, what they need, and their agents.

import { type Fleet, followFleet, readFleet } from '../../app/fleet.ts';
import { plainPalette } from '../../view/row.ts';
import { fleetRows } from '../../view/fleet-lines.ts';
import type { Switches } from '../flags.ts';
import { EXIT, printLines, printResult, warn } from '../output.ts';
import { Redraw } from '../redraw.ts';
import { isAscii } from '../reporters.ts';
import { canRedraw, lineWidth, paletteFor } from '../terminal.ts';

export async function top(
  options: Switches<'once' | 'json'> & { readonly project?: readonly string[] },
): Promise<number> {
  const given = options.project ?? [];
  if (options.once || options.json || !canRedraw(process.stdout)) {
    const fleet = await readFleet(given);
    if (fleet.remark !== null) warn(`meow: ${fleet.remark}`);
    if (options.json) return printResult(fleet.view);
    printLines(linesOf(fleet, given, Math.min(lineWidth(process.stdout), WIDTH_MAX)));
    return EXIT.done;
  }
  await watch(given);
  return EXIT.done;
}

/** Without a terminal. */
const WIDTH_MAX = 160;

async function watch(given: readonly string[]): Promise<void> {
  let fleet: Fleet | null = null;
  const lines = ({ width, height }: { readonly width: number; readonly height: number }): readonly string[] =>
    fleet === null ? [] : linesOf(fleet, given, width).slice(0, height);
  const redraw = new Redraw({ lines, moves: () => true, settled: () => true }, process.stdout);
  const leave = (): void => {
    redraw.close(null);
    process.exit(130);
  };
  process.once('SIGINT', leave);
  for await (const next of followFleet(given, new AbortController().signal)) {
    fleet = next;
    redraw.changed();
  }
}

function linesOf({ view, projects, remark }: Fleet, given: readonly string[], width: number): readonly string[] {
  const palette = canRedraw(process.stdout) ? paletteFor(process.stdout) : plainPalette;
  const scope = given.length === 0 ? 'all projects' : projects.map(({ name }) => name).join(', ');
  const now = new Date();
  const clock = now.toTimeString().slice(0, 8);
  const rows = fleetRows(view, { now: now.getTime(), width, palette, ascii: isAscii(), scope, clock });
  const empty = view.runs.length === 0 ? ['', 'Nothing has run here yet.  meow run FILE (an example: meow init)'] : [];
  return [...rows.map(({ text }) => text), ...empty, ...(remark === null ? [] : ['', palette.dim(remark)])];
}
