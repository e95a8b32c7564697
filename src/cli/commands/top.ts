// `meow top`: all runs of this machine, what they need, and their agents.

import { type Fleet, readFleet } from '../../app/fleet.ts';
import { plainPalette } from '../../view/row.ts';
import { fleetRows } from '../../view/fleet-lines.ts';
import type { Switches } from '../flags.ts';
import { EXIT, printLines, printResult, warn } from '../output.ts';
import { isAscii } from '../reporters.ts';
import { canRedraw, lineWidth, paletteFor } from '../terminal.ts';
import { TopScreen } from '../top-screen.ts';

export async function top(
  options: Switches<'once' | 'json'> & { readonly project?: readonly string[] },
): Promise<number> {
  const given = options.project ?? [];
  if (options.once || options.json || !canRedraw(process.stdout) || !process.stdin.isTTY) {
    const fleet = await readFleet(given);
    if (fleet.remark !== null) warn(`meow: ${fleet.remark}`);
    if (options.json) return printResult(fleet.view);
    printLines(linesOf(fleet, given, Math.min(lineWidth(process.stdout), WIDTH_MAX)));
    return EXIT.done;
  }
  await new TopScreen(paletteFor(process.stdout), scopeOf(given)).show(given);
  return EXIT.done;
}

/** Without a terminal. */
const WIDTH_MAX = 160;

function linesOf(fleet: Fleet, given: readonly string[], width: number): readonly string[] {
  const { view, remark } = fleet;
  const palette = canRedraw(process.stdout) ? paletteFor(process.stdout) : plainPalette;
  const now = new Date();
  const clock = now.toTimeString().slice(0, 8);
  const drawing = { now: now.getTime(), width, palette, ascii: isAscii(), clock, selected: null };
  const rows = fleetRows(view, { ...drawing, scope: scopeOf(given)(fleet) });
  const empty = view.runs.length === 0 ? ['', 'Nothing has run here yet.  meow run FILE (an example: meow init)'] : [];
  return [...rows.map(({ text }) => text), ...empty, ...(remark === null ? [] : ['', palette.dim(remark)])];
}

function scopeOf(given: readonly string[]): (fleet: Fleet) => string {
  return ({ projects }) => (given.length === 0 ? 'all projects' : projects.map(({ name }) => name).join(', '));
}
