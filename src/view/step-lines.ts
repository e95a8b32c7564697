// Prints everything about one step, or about a run, for `meow show`.

import { sanitize } from '../base/sanitize.ts';
import { formatDuration, parseDuration } from '../base/time.ts';
import { plainText } from '../ir/text.ts';
import type { Cost } from '../kernel/decision.ts';
import type { Palette } from './row.ts';
import type { RunView, StepView } from './step.ts';
import { countsText } from './summary.ts';
import { costText } from './usage.ts';

/** `cost`: of all attempts; null if none was reported. */
export function stepLines(view: StepView, cost: Cost | null, palette: Palette): readonly string[] {
  const facts = new Facts(palette);
  facts.title(view.id);
  facts.add('status', view.status + (view.attempt > 1 ? ` (attempt ${view.attempt})` : ''));
  facts.add('kept from', view.kept_from);
  facts.add('executor', view.executor);
  facts.add('agent', view.agent);
  facts.add('delivery', view.delivery);
  facts.add('started', view.started_at);
  facts.add('finished', view.finished_at);
  for (const { need, steps } of view.needed) {
    const named = Object.entries(steps).map(([id, status]) => (id === need ? status : `${id} ${status}`));
    facts.add('needs', `${need}${named.length === 0 ? '' : ` (${named.join(', ')})`}`);
  }
  facts.add('timeout', view.timeout === null ? null : durationText(view.timeout));
  if (view.retry !== null) {
    const { attempts, delay_ms, backoff } = view.retry;
    facts.add('retry', `up to ${attempts} attempts, ${formatDuration(delay_ms)} apart, backoff ${backoff}`);
  }
  if (view.on_error !== 'fail') facts.add('on_error', view.on_error);
  facts.add('expanded from', view.expanded_from);
  if (view.expanded_into.length > 0) facts.add('expanded into', view.expanded_into.join(', '));
  if (view.asks !== null) {
    const { kind, workdir, env, name, text, filled } = view.asks;
    facts.add('folder', workdir);
    for (const [variable, value] of Object.entries(env)) facts.add('env', `${variable}=${value}`);
    if (kind === 'gate') facts.add('gate', name);
    if (kind === 'turn') facts.add('adapter', name);
    const label = kind === 'turn' ? 'prompt' : kind;
    if (text !== '') facts.block(filled ? label : `${label} (as written)`, text);
  }
  for (const [name, value] of Object.entries(view.outputs)) facts.block(`output ${name}`, plainText(value));
  if (view.notes !== null) facts.block('notes', view.notes);
  facts.add('cost', (cost && costText(cost)) || null);
  for (const { attempt, status, agent, started_at, duration_ms, error } of view.kept_from === null
    ? view.attempts
    : []) {
    const took = duration_ms === null ? '' : ` after ${formatDuration(duration_ms)}`;
    const who = agent === null ? '' : ` by ${agent}`;
    const what = error === null ? '' : `: ${error.message}`;
    facts.add(`attempt ${attempt}`, `${started_at}${who} ${status}${took}${what}`);
  }
  if (view.error !== null) {
    const { type, message, code, output } = view.error;
    facts.add('error', `${type}${code === null ? '' : ` (exit ${code})`}: ${message}`);
    if (output !== null && output !== '') facts.block('last output', output);
  }
  return facts.lines;
}

export function runLines(view: RunView, cost: Cost, palette: Palette): readonly string[] {
  const facts = new Facts(palette);
  facts.title(view.id ?? 'run');
  facts.add('workflow', `${view.source} (${view.language})`);
  facts.add('status', view.status);
  facts.add('reason', view.reason);
  facts.add('forked from', view.forked_from);
  facts.add('started', view.started_at);
  facts.add('ended', view.ended_at);
  if (view.duration_ms !== null) facts.add('lasted', formatDuration(view.duration_ms));
  facts.add('folder', view.folder);
  facts.add('cost', costText(cost) || null);
  facts.add('steps', countsText(view.counts, view.status === 'done' ? 'done' : null));
  for (const [name, value] of Object.entries(view.vars)) facts.block(`var ${name}`, plainText(value));
  for (const [name, value] of Object.entries(view.meta)) facts.add(`meta ${name}`, value);
  if (view.result !== null) facts.block('result', plainText(view.result));
  if (view.error !== null) {
    const { type, step, message } = view.error;
    facts.add('error', [step, type, message].filter((part) => part !== null).join(': '));
  }
  for (const [when, script] of Object.entries(view.cleanup))
    if (script !== null) facts.block(`cleanup ${when}`, script);
  for (const warning of view.warnings) facts.add('warning', warning);
  return facts.lines;
}

/** Named facts, one per line; a value of several lines is indented below its name. */
class Facts {
  readonly lines: string[] = [];
  readonly #palette: Palette;

  constructor(palette: Palette) {
    this.#palette = palette;
  }

  title(text: string): void {
    this.lines.push(this.#palette.bold(sanitize(text)));
  }

  add(name: string, value: string | null): void {
    if (value === null) return;
    this.lines.push(`  ${this.#palette.dim(`${sanitize(name)}:`.padEnd(NAME_WIDTH))} ${sanitize(value)}`);
  }

  block(name: string, value: string): void {
    const lines = value.replace(/\n+$/, '').split('\n');
    if (lines.length === 1) return this.add(name, value);
    this.lines.push(`  ${this.#palette.dim(`${sanitize(name)}:`)}`);
    const shown = lines.slice(0, BLOCK_LINES_MAX);
    for (const line of shown) this.lines.push(`    ${sanitize(line.replaceAll('\t', '    '))}`.trimEnd());
    if (lines.length > shown.length)
      this.lines.push(this.#palette.dim(`    … ${lines.length - shown.length} more lines`));
  }
}

const NAME_WIDTH = 10;
const BLOCK_LINES_MAX = 60;

/** A duration as written in a Program, formatted; unchanged if it contains placeholders. */
export function durationText(written: string): string {
  const ms = parseDuration(written);
  return ms === null ? written : formatDuration(ms);
}
