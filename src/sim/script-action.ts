// Actions of a simulated agent, one verb for each table. Half of them are misbehaviour.

import type { JsonMap } from '../base/json.ts';
import type { Usage } from '../ir/output.ts';
import { namesOf } from '../languages/keys.ts';
import { checkKeys, listed, type Report, suggest } from '../languages/report.ts';
import { COST, CRASH_SIGNALS, keysBeside, type Verb, VERB_NAMES } from '../languages/sim-keys.ts';
import { duration, stringAt, tableAt } from '../languages/toml-fields.ts';
import { describeToml, type TomlEntry, type TomlTable, tomlToJson, type TomlValue } from '../languages/toml-tree.ts';

export type Action =
  | { readonly kind: 'say'; readonly text: string }
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'write'; readonly path: string; readonly text: string }
  | { readonly kind: 'run'; readonly command: string }
  | { readonly kind: 'event'; readonly event: string; readonly data: JsonMap }
  /** Without a gate, asks into the void as real agents do: the turn ends. */
  | { readonly kind: 'ask'; readonly question: string; readonly gate: string | null }
  /** `outputs` null: a suitable value for each requested output. */
  | { readonly kind: 'done'; readonly outputs: JsonMap | null; readonly notes: string | null; readonly twice: boolean }
  /** Acts as the stop hook; ends the turn if no prompt is pending. */
  | { readonly kind: 'prime' }
  /** Reports outputs that will be rejected; null: reports no outputs. */
  | { readonly kind: 'wrong'; readonly outputs: JsonMap | null }
  | { readonly kind: 'crash'; readonly how: number | NodeJS.Signals }
  /** `hard`: ignores interrupts and requests to exit. */
  | { readonly kind: 'hang'; readonly hard: boolean }
  | { readonly kind: 'ignore' }
  | { readonly kind: 'stop' }
  /** Costs of the turn, for agents that report them; null: not reported. */
  | { readonly kind: 'cost'; readonly usage: Usage }
  | { readonly kind: 'fail'; readonly text: string }
  | { readonly kind: 'limit'; readonly text: string };

type Reader = (entry: TomlEntry, table: TomlTable, report: Report) => Action | null;

const READERS: Readonly<Record<Verb, Reader>> = {
  say: text((value) => ({ kind: 'say', text: value })),
  wait: ({ key, value }, _, report) => {
    const ms = duration(report, key, value);
    return ms === null ? null : { kind: 'wait', ms };
  },
  write: text((path, table, report) => {
    return { kind: 'write', path, text: stringAt(report, table, 'text')?.value ?? '' };
  }),
  run: text((value) => ({ kind: 'run', command: value })),
  event: (entry, table, report) => {
    const event = stringAt(report, table, entry.key);
    const data = tableAt(report, table, 'data', 'For example { event = "built", data = { file = "a.ts" } }.');
    return event && { kind: 'event', event: event.value, data: data === null ? {} : mapOf(data) };
  },
  ask: (entry, table, report) => {
    const question = stringAt(report, table, entry.key);
    const gate = stringAt(report, table, 'gate')?.value ?? null;
    return question && { kind: 'ask', question: question.value, gate };
  },
  done: done(false),
  done_twice: done(true),
  wrong: (entry, _, report) => {
    const outputs = outputsIn(entry, report);
    return outputs === undefined ? null : { kind: 'wrong', outputs };
  },
  prime: flag({ kind: 'prime' }),
  ignore: flag({ kind: 'ignore' }),
  stop: flag({ kind: 'stop' }),
  hang: ({ key, value }, _, report) => {
    if (value.kind === 'boolean' && value.value) return { kind: 'hang', hard: false };
    if (value.kind === 'string' && value.value === 'hard') return { kind: 'hang', hard: true };
    return wrong(report, key, value, 'true or "hard"', 'A hard one cannot be interrupted, nor ended with TERM.');
  },
  crash: ({ key, value }, _, report) => {
    if (value.kind === 'integer' && value.value >= 0 && value.value <= 255) return { kind: 'crash', how: value.value };
    const signal = CRASH_SIGNALS.find((each) => value.kind === 'string' && each === value.value);
    if (signal !== undefined) return { kind: 'crash', how: signal };
    const hint = `For example { crash = 1 } or { crash = "SIGKILL" }. Signals: ${listed(CRASH_SIGNALS)}.`;
    return wrong(report, key, value, 'an exit status or a signal', hint);
  },
  cost: ({ key, value }, _, report) => {
    const hint = 'For example { cost = { usd = 0.05, tokens = 1200 } }.';
    if (value.kind !== 'table') return wrong(report, key, value, 'a table', hint);
    checkKeys(report, value, namesOf(COST.keys), `the action "${key}"`, 'error');
    const amountAt = (name: string): number | null => {
      const amount = value.entries.get(name)?.value;
      if (amount === undefined) return null;
      if ((amount.kind === 'integer' || amount.kind === 'float') && amount.value >= 0) return amount.value;
      return wrong(report, name, amount, 'an amount', hint);
    };
    const [input, cached, output] = ['input', 'cached', 'output'].map(amountAt);
    const kinds = [input, cached, output].filter((count) => typeof count === 'number');
    const parts = kinds.length === 0 ? null : { input: input ?? 0, cached: cached ?? 0, output: output ?? 0 };
    const tokens = amountAt('tokens') ?? (parts === null ? null : kinds.reduce((sum, count) => sum + count, 0));
    return { kind: 'cost', usage: { usd: amountAt('usd'), tokens, ...(parts === null ? {} : { parts }) } };
  },
  fail: text((value) => ({ kind: 'fail', text: value })),
  limit: text((value) => ({ kind: 'limit', text: value })),
};

/** Null after an error was reported. */
export function readAction(report: Report, value: TomlValue): Action | null {
  if (value.kind !== 'table') {
    const hint = 'Each action is a table with one verb: { say = "…" }.';
    report.error('wrong-type', value.place, `an action must be a table, got ${describeToml(value)}`, hint);
    return null;
  }
  const [verb, second] = [...value.entries.values()].flatMap((entry) => {
    const name = VERB_NAMES.find((each) => each === entry.key);
    return name === undefined ? [] : [{ name, entry }];
  });
  if (verb === undefined) {
    const [written = ''] = value.entries.keys();
    const hint = suggest(written, VERB_NAMES, `Verbs are ${VERB_NAMES.join(', ')}.`);
    report.error('unknown-action', value.place, 'the action has no verb that is known', hint);
    return null;
  }
  if (second !== undefined) {
    const message = `the action has two verbs, "${verb.name}" and "${second.name}"`;
    report.error(
      'two-actions',
      second.entry.keyPlace,
      message,
      'Write them as two actions, in the order that you mean.',
    );
    return null;
  }
  checkKeys(report, value, [verb.name, ...keysBeside(verb.name)], `the action "${verb.name}"`, 'error');
  return READERS[verb.name](verb.entry, value, report);
}

function text(make: (value: string, table: TomlTable, report: Report) => Action): Reader {
  return (entry, table, report) => {
    const value = stringAt(report, table, entry.key);
    return value && make(value.value, table, report);
  };
}

function flag(action: Action): Reader {
  return ({ key, value }, _, report) => {
    if (value.kind === 'boolean' && value.value) return action;
    return wrong(report, key, value, 'true', `Write { ${key} = true }, or leave it out.`);
  };
}

function done(twice: boolean): Reader {
  return (entry, table, report) => {
    const outputs = outputsIn(entry, report);
    const notes = stringAt(report, table, 'notes')?.value ?? null;
    return outputs === undefined ? null : { kind: 'done', outputs, notes, twice };
  };
}

/** Undefined after an error was reported. */
function outputsIn({ key, value }: TomlEntry, report: Report): JsonMap | null | undefined {
  if (value.kind === 'table') return mapOf(value);
  if (value.kind === 'boolean' && value.value) return null;
  wrong(report, key, value, 'true or a table of outputs', `For example { ${key} = { file = "a.ts" } }.`);
  return undefined;
}

function mapOf(table: TomlTable): JsonMap {
  return tomlToJson(table) as JsonMap;
}

function wrong(report: Report, key: string, value: TomlValue, expected: string, hint: string): null {
  const got = value.kind === 'string' ? JSON.stringify(value.value) : describeToml(value);
  report.error('wrong-type', value.place, `"${key}" must be ${expected}, got ${got}`, hint);
  return null;
}
