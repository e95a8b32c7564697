// Figures as tables: one for the terminal, one for RESULTS.md.

import { availableParallelism } from 'node:os';
import { count, type Figure, type Measurement, type Target, type Unit } from './measure.ts';

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
  return `# Benchmark results

Written by \`npm run bench\`. Every figure is shown with a baseline, the bare minimum on the same machine, measured in the same
run: compare ratios, not times.

Machine: ${machine()}.

${table.map((row) => `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`).join('\n')}

## Method

A subject and its baseline are measured alternately, in ${rounds} rounds after a warm-up round. The result is the median over the rounds
(for a ratio, of the ratios within each round), with the best round next to it; times are also medians. Children get only PATH and
HOME as environment, and their output is discarded. Everything happens in a temporary folder that is deleted at the very end. The
measurement starts when the file system creates files at its usual speed.

${measurements.map(({ name, method }) => `- **${name}.** ${method}`).join('\n')}

To repeat it, or a part of it: \`npm run bench\`, \`npm run bench -- chain wide --rounds 9\`, \`npm run bench -- --json\`. Only a
complete run rewrites this file.
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
    case 'KB':
      return `${value.toFixed(1)} KB`;
    case '%':
      return `${value.toFixed(2)} %`;
    case 'rows':
    case 'processes':
      return `${count(value)} ${unit}`;
    case 'inodes':
      return value.toFixed(2);
  }
}
