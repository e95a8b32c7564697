// Figures as tables: one for the terminal, one for RESULTS.md.

import { availableParallelism } from 'node:os';
import { count } from './measure.ts';
import type { Figure, Measurement, Target, Unit } from './measure.ts';

const HEAD = ['what', 'measured', 'against', 'result', '(best)', 'target', 'reached'] as const;

export function textTable(figures: readonly Figure[]): string {
  const rows = [[...HEAD], ...figures.map(cells)];
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

export function resultsDocument(
  measurements: readonly Measurement[],
  figures: readonly Figure[],
  rounds: number,
): string {
  const table = [[...HEAD], HEAD.map(() => '---'), ...figures.map(cells)];
  return `# What it costs

Written by \`npm run bench\`. Every figure stands beside what the same machine needs for the bare minimum, measured in the same
run: compare ratios, not times.

Machine: ${machine()}.

${table.map((row) => `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`).join('\n')}

## How it is measured

A thing and what it is held against are measured in turns, in ${rounds} rounds after one that is not counted. The result is the median
over the rounds (of the ratios within each round, where it is a ratio), with the best round beside it; times are medians too.
Children get an environment of PATH and HOME alone, and write to nowhere. Everything happens in a folder for temporary files
that is deleted at the very end, and begins when the file system makes files at its usual pace.

${measurements.map(({ name, method }) => `- **${name}.** ${method}`).join('\n')}

Again, or a part of it: \`npm run bench\`, \`npm run bench -- chain wide --rounds 9\`, \`npm run bench -- --json\`. Only a whole run
rewrites this file.
`;
}

export function machine(): string {
  return `${availableParallelism()} cores, ${process.platform}, Node ${process.versions.node}`;
}

export function isReached({ value, target }: Figure): boolean | null {
  if (target === null) return null;
  return target.kind === 'at-most' ? value <= target.value : value >= target.value;
}

function cells(figure: Figure): string[] {
  const { what, measured, against, value, best, unit, target } = figure;
  const reached = isReached(figure);
  return [
    what,
    measured,
    against,
    amount(value, unit),
    amount(best, unit),
    target === null ? '' : targetText(target, unit),
    reached === null ? '' : reached ? 'yes' : 'NO',
  ];
}

function targetText({ kind, value }: Target, unit: Unit): string {
  return `${kind === 'at-most' ? '≤' : '≥'} ${amount(value, unit)}`;
}

function amount(value: number, unit: Unit): string {
  switch (unit) {
    case '×':
      return value >= 100 ? `${count(value)} ×` : `${value.toFixed(2)} ×`;
    case 's':
      return `${value.toFixed(2)} s`;
    case 'ms':
      return `${value.toFixed(2)} ms`;
    case '/s':
      return `${count(value)}/s`;
    case 'MB':
      return `${count(value)} MB`;
  }
}
