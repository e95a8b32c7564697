// A run as one static page: steps, costs, and the ends of logs. It has no script and refers to nothing outside of itself.

import { formatDuration, parseMoment } from '../base/time.ts';
import type { CostSum } from './cost-entries.ts';
import type { StatusView, StepStatusView } from './status.ts';

export interface ReportedOutput {
  /** `STEP#ATTEMPT`. */
  readonly attempt: string;
  readonly stream: string;
  readonly text: string;
  /** Whether something came before the text. */
  readonly isCut: boolean;
}

export interface RunReport {
  readonly id: string;
  readonly view: StatusView;
  readonly costs: readonly CostSum[];
  readonly outputs: readonly ReportedOutput[];
  /** ISO 8601. */
  readonly at: string;
}

/** All texts in it are foreign. */
export function reportPage({ id, view, costs, outputs, at }: RunReport): string {
  const facts: readonly (readonly [string, string | null])[] = [
    ['status', view.status],
    ['workflow', `${view.source} (${view.language})`],
    ['started', view.started_at],
    ['ended', view.ended_at],
    ['error', view.error?.message ?? null],
    ['cost', view.cost.usd === null ? null : `$${view.cost.usd.toFixed(2)}`],
    ['notes', Object.keys(view.meta).length === 0 ? null : JSON.stringify(view.meta)],
  ];
  const known = facts.flatMap(([name, value]) => (value === null ? [] : [[name, value] as const]));
  return [
    '<!doctype html>',
    '<html lang="en"><head><meta charset="utf-8">',
    `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">`,
    `<title>${escaped(id)}: ${escaped(view.status)}</title><style>${STYLE}</style></head><body>`,
    `<h1>${escaped(id)}</h1>`,
    `<dl>${known.map(([name, value]) => `<dt>${name}</dt><dd>${escaped(value)}</dd>`).join('')}</dl>`,
    '<h2>Steps</h2>',
    table(['step', 'executor', 'status', 'attempts', 'time', 'problem'], Object.entries(view.steps).map(stepRow)),
    ...(costs.length === 0 ? [] : ['<h2>Costs</h2>', costTable(costs)]),
    ...(view.warnings.length === 0 ? [] : ['<h2>Warnings</h2>', list(view.warnings)]),
    ...(outputs.length === 0 ? [] : ['<h2>Ends of logs</h2>', ...outputs.map(outputPart)]),
    `<footer>${escaped(at)}</footer></body></html>\n`,
  ].join('\n');
}

const STYLE =
  'body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}' +
  'table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25em .75em .25em 0;vertical-align:top;' +
  'border-bottom:1px solid #ddd}dl{display:grid;grid-template-columns:max-content 1fr;gap:.2em 1em}dd{margin:0}' +
  'pre{background:#f5f5f5;padding:.75em;overflow:auto;white-space:pre-wrap}footer{color:#777;margin-top:2em}';

function stepRow([id, step]: readonly [string, StepStatusView]): readonly string[] {
  const { started_at: from, finished_at: to, error } = step;
  const began = parseMoment(from ?? '');
  const ended = parseMoment(to ?? '');
  const time = began === null || ended === null ? '' : formatDuration(ended - began);
  return [id, step.executor, step.outcome ?? step.status, String(step.attempt), time, error?.message ?? ''];
}

function costTable(costs: readonly CostSum[]): string {
  const rows = costs.map(({ name, turns, cost }) => {
    const usd = cost.unpriced > 0 && cost.usd === 0 ? 'unknown' : `$${cost.usd.toFixed(4)}`;
    return [name, String(turns), String(cost.tokens), cost.unpriced > 0 ? `${usd} (${cost.unpriced} unknown)` : usd];
  });
  return table(['step', 'turns', 'tokens', 'price'], rows);
}

function outputPart({ attempt, stream, text, isCut }: ReportedOutput): string {
  return `<h3>${escaped(attempt)} ${escaped(stream)}</h3>\n<pre>${isCut ? '…\n' : ''}${escaped(text)}</pre>`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = (tag: string, texts: readonly string[]): string =>
    `<tr>${texts.map((text) => `<${tag}>${escaped(text)}</${tag}>`).join('')}</tr>`;
  return `<table>${cells('th', head)}${rows.map((row) => cells('td', row)).join('')}</table>`;
}

function list(texts: readonly string[]): string {
  return `<ul>${texts.map((text) => `<li>${escaped(text)}</li>`).join('')}</ul>`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Without control characters, which no page can contain. */
function escaped(text: string): string {
  return text
    .replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? character)
    .replaceAll(/[^\P{Cc}\n\t]/gu, '\u{FFFD}');
}
