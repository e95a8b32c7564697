// `meow doctor`: checks that everything needed by runs and agents is installed, and says how to fix it if not.

import { Adapters } from '../../app/adapters.ts';
import { type Check, checkAdapters, checkMachine } from '../../app/doctor.ts';
import { findProject } from '../../app/project.ts';
import { sanitize } from '../../base/sanitize.ts';
import { EXIT, printLines, printResult } from '../output.ts';
import { inColumns, paletteFor } from '../terminal.ts';

/** A program that takes longer hangs, or waits for somebody. */
const TIMEOUT_MS = 10_000;

export async function doctor({ json }: { readonly json?: true }): Promise<number> {
  const project = findProject();
  const [machine, agents] = await Promise.all([
    checkMachine(project, TIMEOUT_MS),
    checkAdapters(new Adapters(project).all(), TIMEOUT_MS),
  ]);
  const checks = [...machine, ...agents];
  if (json) printResult(checks);
  else printLines(table(checks));
  return checks.some(({ needed, status }) => needed && status === 'missing') ? EXIT.failed : EXIT.done;
}

function table(checks: readonly Check[]): readonly string[] {
  const palette = paletteFor(process.stdout);
  const styles = { ok: palette.green, warning: palette.yellow, missing: palette.red };
  const rows = checks.map(({ status, name, text, cure }) => [
    status,
    sanitize(name),
    sanitize(cure === null ? text : `${text} · ${cure}`),
  ]);
  const [, ...lines] = inColumns(['', '', ''], rows);
  return lines.map((line) => line.replace(/^\S+/, (status) => styles[status as Check['status']](status)));
}
