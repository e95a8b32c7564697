// `meow doctor`: whether everything is there that runs and agents need, and what to do where it is not.

import { sanitize } from '../../view/sanitize.ts';
import { Adapters } from '../../app/adapters.ts';
import { inColumns, paletteFor } from '../terminal.ts';
import { checkAdapters } from '../../app/doctor/agent-programs.ts';
import type { Check } from '../../app/doctor/check.ts';
import { checkMachine } from '../../app/doctor/machine.ts';
import { EXIT } from '../exit.ts';
import { findProject } from '../../app/project.ts';
import { printLine } from '../output.ts';

/** A program that has not answered by then hangs, or waits for somebody. */
const PATIENCE_MS = 10_000;

export async function doctor({ json }: { readonly json?: true }): Promise<number> {
  const project = findProject();
  const [machine, agents] = await Promise.all([
    checkMachine(project, PATIENCE_MS),
    checkAdapters(new Adapters(project).all(), PATIENCE_MS),
  ]);
  const checks = [...machine, ...agents];
  if (json) printLine(JSON.stringify(checks, null, 2));
  else for (const line of table(checks)) printLine(line);
  return checks.some(({ needed, status }) => needed && status === 'missing') ? EXIT.failed : EXIT.done;
}

function table(checks: readonly Check[]): readonly string[] {
  const palette = paletteFor(process.stdout);
  const brushes = { ok: palette.green, warning: palette.yellow, missing: palette.red };
  const rows = checks.map(({ status, name, text, cure }) => [
    status,
    sanitize(name),
    sanitize(cure === null ? text : `${text} · ${cure}`),
  ]);
  const [, ...lines] = inColumns(['', '', ''], rows);
  return lines.map((line) => line.replace(/^\S+/, (status) => brushes[status as Check['status']](status)));
}
