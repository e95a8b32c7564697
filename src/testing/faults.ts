// Faults of the world of a test, as rules that are put before those of the test. So a faulty world is itself a test, which
// can be printed, and which fails in the same way when somebody pastes it.
//
//   fault/1  A fault happens once: to one prompt or one command, or as one death of the engine. A late decision is late each time.
//   fault/2  Faults are drawn from what happened in a run, so that each can happen. What follows from a fault can have faults
//            as well: they are drawn from the run with that fault.
//   fault/3  In faulty worlds, people and agents that follow no fault act as in the test. Commands that the test does not
//            answer succeed.

import { isJsonMap, type Json, type JsonMap } from '../base/json.ts';
import { segmentMatcher } from '../base/names.ts';
import { below, oneOf, type Random } from '../base/random.ts';
import { exactDuration, parseDuration } from '../base/time.ts';
import type { Effect } from '../ir/effect.ts';
import { meowCallOf } from '../ir/meow-call.ts';
import { plainText } from '../ir/text.ts';
import type { RunState } from '../kernel/state.ts';
import { tomlTable } from './toml-text.ts';
import type { WorldEnd } from './world.ts';

export const RULE_KINDS = ['on', 'command', 'gate', 'event', 'engine', 'stop'] as const;
export type RuleKind = (typeof RULE_KINDS)[number];

/** A rule of a test as its file has it. */
export interface WrittenRule {
  readonly kind: RuleKind;
  readonly entries: JsonMap;
}

/** A place of a run at which something can go wrong, and how. */
type Site = readonly WrittenRule[];

/** Draws a fault of a run; null if nothing can go wrong. `written`: the test as its file has it. */
export function drawFault(
  random: Random,
  { state, records }: Pick<WorldEnd, 'state' | 'records'>,
  written: JsonMap,
): WrittenRule | null {
  const sites = [...stepSites(records), ...gateSites(state, written)];
  const isDeath = sites.length === 0 || random() < DEATH_SHARE;
  if (!isDeath) return oneOf(random, oneOf(random, sites));
  if (records.length === 0) return null;
  const away = oneOf(random, AWAY);
  return { kind: 'engine', entries: { dies_at: 1 + below(random, records.length), ...away } };
}

/** How many faults are deaths of the engine. */
const DEATH_SHARE = 0.2;
const AWAY: readonly JsonMap[] = [{}, { away: '1h' }, { away: '3d' }];

function stepSites(records: WorldEnd['records']): readonly Site[] {
  const started = records.flatMap(({ decisions }) =>
    decisions.flatMap((each) => (each.kind === 'step-started' && each.effect !== null ? [each] : [])),
  );
  return started.flatMap(({ step, effect }) => {
    const site = effect === null ? null : siteOf(step, effect);
    return site === null ? [] : [site];
  });
}

function siteOf(step: string, effect: Effect['spec']): Site | null {
  switch (effect.kind) {
    case 'command': {
      const isCall = typeof effect.script === 'string' && meowCallOf(effect.script) !== null;
      return isCall ? null : COMMAND_FAULTS.map((entries) => ruleFor('command', step, entries));
    }
    case 'prompt':
      if (effect.mode === 'fire-forget') return null;
      return agentFaults(step, effect.expects.some(({ required }) => required) ? WRONG_REPORT : NO_REPORT);
    case 'turn':
      return agentFaults(step, effect.steering === null ? BROKEN : WRONG_ANSWER);
    default:
      return null;
  }
}

function ruleFor(kind: RuleKind, step: string, entries: JsonMap): WrittenRule {
  return { kind, entries: { step, times: 1, ...entries } };
}

/** Most commands have no timeout, so most that hang are the end of the story. */
const COMMAND_FAULTS: readonly JsonMap[] = [{ exit: 1 }, { exit: 1 }, { exit: 1 }, { exit: 137 }, { hangs: true }];

function agentFaults(step: string, actions: readonly JsonMap[]): Site {
  return actions.map((action) => ruleFor('on', step, { do: [action] }));
}

const BROKEN: readonly JsonMap[] = [{ crash: 1 }, { hang: true }, { limit: '2h' }];
const QUESTION: JsonMap = { ask: 'Which of the two do you mean?' };
const NO_REPORT: readonly JsonMap[] = [...BROKEN, QUESTION, { stop: true }];
/** Nonsense is a valid report, or a valid answer, if nobody reads it. */
const WRONG_REPORT: readonly JsonMap[] = [...NO_REPORT, { wrong: { nonsense: 'yes' } }];
const WRONG_ANSWER: readonly JsonMap[] = [...BROKEN, QUESTION, { say: 'Nonsense.' }];

/** A decision of the test comes later. A gate that nobody decides cannot be decided late. */
function gateSites({ gates }: RunState, written: JsonMap): readonly Site[] {
  const rules = tablesAt(written, 'gate');
  return [...gates.keys()].flatMap((gate) => {
    const rule = rules.find(({ gate: pattern }) => typeof pattern === 'string' && segmentMatcher(pattern)(gate));
    if (rule === undefined) return [];
    const usual = typeof rule['after'] === 'string' ? (parseDuration(rule['after']) ?? 0) : 0;
    const late = LATE.map((delay) => exactDuration(usual + delay));
    return [late.map((after) => ({ kind: 'gate' as const, entries: { ...rule, gate, after } }))];
  });
}

const [HOUR_MS, DAY_MS] = [3_600_000, 86_400_000];
/** Later than usual. */
const LATE = [HOUR_MS, 2 * DAY_MS, 30 * DAY_MS];

/** Faults are drawn one after the other from 1 to this many. */
export const FAULTS_MAX = 4;

/** A test with its rules: those of faults first, those that answer what no rule answers last. */
export interface FaultyTest {
  /** As in the file, without its rules. */
  readonly head: JsonMap;
  readonly rules: readonly WrittenRule[];
  readonly expect: JsonMap;
}

/** `written`: the test as its file has it, defaults included. `answers`: for commands that it does not answer. */
export function faultyTest(
  written: JsonMap,
  faults: readonly WrittenRule[],
  answers: readonly WrittenRule[],
): FaultyTest {
  const { expect = {}, ...rest } = written;
  const isRules = (key: string): boolean => RULE_KINDS.some((kind) => kind === key);
  const own = RULE_KINDS.flatMap((kind) => tablesAt(written, kind).map((entries) => ({ kind, entries })));
  const { never, order } = isJsonMap(expect) ? expect : {};
  return {
    head: Object.fromEntries(Object.entries(rest).filter(([key]) => !isRules(key))),
    rules: [...faults, ...own, ...answers],
    expect: { ...(never === undefined ? {} : { never }), ...(order === undefined ? {} : { order }) },
  };
}

/** The rules of one kind in the order in which the file has them, by their positions in the list. */
export function positionsOf(rules: readonly WrittenRule[], kind: RuleKind): readonly number[] {
  return rules.flatMap((rule, index) => (rule.kind === kind ? [index] : []));
}

/** The text of a test file with this test. `optional`: rules that are not used do not fail it. */
export function faultyTestText(
  { head, rules, expect }: FaultyTest,
  { workflow, optional }: { readonly workflow: string | null; readonly optional: boolean },
): string {
  return [
    ...(workflow === null ? [] : [`${tomlTable('', { workflow }).trim()}\n`]),
    tomlTable('[[test]]', head),
    ...RULE_KINDS.flatMap((kind) =>
      rules.flatMap((rule) =>
        rule.kind === kind
          ? [tomlTable(`[[test.${kind}]]`, optional ? { ...rule.entries, optional } : rule.entries)]
          : [],
      ),
    ),
    tomlTable('[test.expect]', expect),
  ].join('\n');
}

/** An answer for the command of a step that no rule answers. */
export function answerFor(step: string): WrittenRule {
  return { kind: 'command', entries: { step } };
}

/** A fault in a few words. */
export function faultText({ kind, entries }: WrittenRule): string {
  const { step, gate, after, dies_at: seq, away, do: actions, exit } = entries;
  switch (kind) {
    case 'on':
      return `the agent of ${plainText(step ?? null)}: ${JSON.stringify((actions as readonly Json[])[0])}`;
    case 'command':
      return `the command of ${plainText(step ?? null)} ${exit === undefined ? 'hangs' : `exits with status ${plainText(exit)}`}`;
    case 'gate':
      return `gate ${plainText(gate ?? null)} is decided after ${plainText(after ?? null)}`;
    default:
      return `the engine dies at record ${plainText(seq ?? null)}${away === undefined ? '' : ` and is away for ${plainText(away)}`}`;
  }
}

function tablesAt(written: JsonMap, key: string): readonly JsonMap[] {
  const list = written[key];
  return Array.isArray(list) ? (list as readonly Json[]).filter(isJsonMap) : [];
}
