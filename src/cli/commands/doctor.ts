// `meow doctor`: checks that everything needed by runs and agents is installed, and says how to fix it if not. It finds what
// ended runs have left, and removes it with --fix.

import { createInterface } from 'node:readline/promises';

import { Adapters } from '../../app/adapters.ts';
import { type Check, checkAdapters, checkMachine } from '../../app/doctor.ts';
import { findOrphans, type FoundOrphan, type Orphan } from '../../app/orphans.ts';
import { findProject } from '../../app/project.ts';
import { UsageError } from '../../base/errors.ts';
import { sanitize } from '../../base/sanitize.ts';
import type { Switches } from '../flags.ts';
import { EXIT, printLines, printResult, warn } from '../output.ts';
import { inColumns, paletteFor } from '../terminal.ts';

/** A program that takes longer hangs, or waits for somebody. */
const TIMEOUT_MS = 10_000;

export async function doctor({ json, fix, yes }: Switches<'json' | 'fix' | 'yes'>): Promise<number> {
  if (yes && !fix) throw new UsageError('--yes is for --fix', 'meow doctor --fix --yes');
  const canAsk = process.stdin.isTTY && process.stdout.isTTY && !json;
  if (fix && !yes && !canAsk)
    throw new UsageError(
      '--fix asks before it removes anything, and there is nobody to ask',
      'meow doctor --fix --yes',
    );
  const project = findProject();
  const [machine, agents, found] = await Promise.all([
    checkMachine(project, TIMEOUT_MS),
    checkAdapters(new Adapters(project).all(), TIMEOUT_MS),
    findOrphans(project),
  ]);
  const checks = [...machine, ...agents];
  if (!json) printLines([...table(checks), ...orphanLines(found)]);
  const isFixed = fix === true && found.length > 0 && (yes === true || (await isAgreed(found.length)));
  const left = isFixed ? await removeAll(found) : found;
  if (json) printResult({ checks, orphans: left.map(plain) });
  else if (isFixed) printLines([`removed: ${found.length - left.length}, left: ${left.length}`]);
  const isMissing = checks.some(({ needed, status }) => needed && status === 'missing');
  return isMissing || left.length > 0 ? EXIT.failed : EXIT.done;
}

async function isAgreed(count: number): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const answer = await terminal.question(`end and remove ${count === 1 ? 'it' : `these ${count}`}? [y/N] `);
    return /^y(?:es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}

/** Those that are left. */
async function removeAll(found: readonly FoundOrphan[]): Promise<readonly FoundOrphan[]> {
  const left: FoundOrphan[] = [];
  for (const orphan of found) {
    const problem = await orphan.remove();
    if (problem === null) continue;
    left.push(orphan);
    warn(`meow: ${orphan.kind} ${sanitize(orphan.id)}: ${sanitize(problem)}`);
  }
  return left;
}

function plain({ kind, id, run, since, cure }: Orphan): Orphan {
  return { kind, id, run, since, cure };
}

function orphanLines(found: readonly Orphan[]): readonly string[] {
  if (found.length === 0) return [];
  const rows = found.map(({ kind, id, run, cure }) => [kind, sanitize(id), sanitize(run ?? '-'), sanitize(cure)]);
  return [
    '',
    'left by runs that are over:',
    ...inColumns(['KIND', 'ID', 'RUN', 'REMOVE WITH'], rows),
    'all of it: meow doctor --fix',
  ];
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
