// Settings of a workflow or a state: adapter, model, effort and time limits.

import type { Report } from '../report.ts';
import { countAt, durationAt, textAt } from '../yaml-fields.ts';
import type { YamlMap } from '../yaml-tree.ts';

/** Null if absent. */
export interface Settings {
  readonly adapter: string | null;
  readonly model: string | null;
  readonly effort: string | null;
  /** Limits on a turn's duration and silence; 0 is unlimited. */
  readonly timeoutMs: number | null;
  readonly idleMs: number | null;
  /** How often an invalid answer is corrected. */
  readonly retries: number | null;
}

export const SETTINGS_KEYS = ['adapter', 'model', 'effort', 'timeout', 'idle_timeout', 'retries'] as const;

/** Keys of a whole workflow. */
export const WORKFLOW_KEYS: readonly string[] = [...SETTINGS_KEYS, 'id', 'name', 'description', 'reset'];

export const NO_SETTINGS: Settings = {
  adapter: null,
  model: null,
  effort: null,
  timeoutMs: null,
  idleMs: null,
  retries: null,
};

export function readSettings(report: Report, map: YamlMap): Settings {
  const text = (key: string): string | null => textAt(report, map, key)?.text.trim() ?? null;
  return {
    adapter: text('adapter'),
    model: text('model'),
    effort: text('effort'),
    timeoutMs: durationAt(report, map, 'timeout'),
    idleMs: durationAt(report, map, 'idle_timeout'),
    retries: countAt(report, map, 'retries', 0),
  };
}

/** Fields of the first, with the second as defaults. */
export function overriding(first: Settings, second: Settings): Settings {
  return {
    adapter: first.adapter ?? second.adapter,
    model: first.model ?? second.model,
    effort: first.effort ?? second.effort,
    timeoutMs: first.timeoutMs ?? second.timeoutMs,
    idleMs: first.idleMs ?? second.idleMs,
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
  report.error('invalid-value', value.place, `"reset" is keep-stack or clear-stack, got ${value.text}`, hint);
  return null;
}
