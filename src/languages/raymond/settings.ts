// Settings of a workflow or a state: adapter, model, effort and time limits. Budget of a workflow.

import type { Report } from '../report.ts';
import { countAt, durationAt, textAt } from '../yaml-fields.ts';
import { describeYaml, type YamlMap } from '../yaml-tree.ts';

/** Null if absent. */
export interface Settings {
  readonly adapter: string | null;
  readonly model: string | null;
  readonly effort: string | null;
  /** Limits on the time without output and on the whole time; 0 is unlimited. */
  readonly idleMs: number | null;
  readonly totalMs: number | null;
  /** How often an invalid answer is corrected. */
  readonly retries: number | null;
}

export const NO_SETTINGS: Settings = {
  adapter: null,
  model: null,
  effort: null,
  idleMs: null,
  totalMs: null,
  retries: null,
};

export function readSettings(report: Report, map: YamlMap): Settings {
  const text = (key: string): string | null => textAt(report, map, key)?.text.trim() ?? null;
  return {
    adapter: text('adapter'),
    model: text('model'),
    effort: text('effort'),
    idleMs: readIdle(report, map),
    totalMs: durationAt(report, map, 'total_timeout'),
    retries: countAt(report, map, 'retries', 0),
  };
}

/** One limit with two names. */
function readIdle(report: Report, map: YamlMap): number | null {
  const limits = ['timeout', 'idle_timeout'].map((key) => durationAt(report, map, key));
  const [first = null, second = null] = limits;
  const other = first === null || second === null ? undefined : map.entries.get('idle_timeout');
  if (other !== undefined) {
    const message = '"idle_timeout" and "timeout" are the same limit, and "timeout" counts';
    report.warning('unused-key', other.keyPlace, message, 'Remove it; the limit of the whole time is total_timeout.');
  }
  return first ?? second;
}

/** In dollars. Null if absent. */
export function readBudget(report: Report, map: YamlMap): number | null {
  const value = map.entries.get('default_budget')?.value;
  if (value === undefined || value.kind === 'nothing') return null;
  const usd = value.kind === 'number' ? Number(value.text) : Number.NaN;
  if (Number.isFinite(usd) && usd > 0) return usd;
  const message = `"default_budget" must be a number of dollars above 0, got ${describeYaml(value)}`;
  return report.error('wrong-type', value.place, message, 'For example default_budget: 2.50.');
}

/** Fields of the first, with the second as defaults. */
export function overriding(first: Settings, second: Settings): Settings {
  return {
    adapter: first.adapter ?? second.adapter,
    model: first.model ?? second.model,
    effort: first.effort ?? second.effort,
    idleMs: first.idleMs ?? second.idleMs,
    totalMs: first.totalMs ?? second.totalMs,
    retries: first.retries ?? second.retries,
  };
}

/** `reset: keep-stack`: whether a reset keeps pending returns. Null if absent. */
export function readReset(report: Report, map: YamlMap): boolean | null {
  const value = textAt(report, map, 'reset');
  if (value === null) return null;
  if (value.text === 'keep-stack') return true;
  if (value.text === 'clear-stack') return false;
  const hint = 'Write reset: keep-stack, or leave it out: a reset then drops pending returns.';
  return report.error('invalid-value', value.place, `"reset" is keep-stack or clear-stack, got ${value.text}`, hint);
}
