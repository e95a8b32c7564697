// A planner's answer: one JSON object of a fixed form. Its texts are never interpreted; a wrong form is reported back
// with everything that is wrong.
//
// The object may be inside a code fence, since some agents always add one. Additional keys are accepted and ignored.

import { isJsonMap, own } from '../../base/json.ts';
import type { Json, JsonMap } from '../../base/json.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import { STATUSES } from '../../ir/conducted.ts';
import type { EvaluationStatus } from '../../ir/conducted.ts';
import { coerce } from '../../ir/output.ts';

export interface PlannerAnswer {
  readonly status: EvaluationStatus;
  readonly next_step: string | null;
  /** A text or a map, passed on unchanged. */
  readonly fix_instructions: Json;
  readonly blockers: readonly Json[];
  readonly risk_flags: readonly Json[];
}

export interface BadAnswer {
  /** A sentence for people. */
  readonly message: string;
  /** The message to the planner. */
  readonly reprompt: string;
}

export function readAnswer(text: string, allowedNext: readonly string[]): Result<PlannerAnswer, BadAnswer> {
  const read = coerce(withoutFence(text), 'json');
  if (!read.ok) return bad([`it is not one JSON object (${read.error})`], allowedNext);
  if (!isJsonMap(read.value)) return bad(['it is JSON, but not an object'], allowedNext);
  const problems = problemsOf(read.value, allowedNext);
  if (problems.length > 0) return bad(problems, allowedNext);
  const { status, next_step, fix_instructions, blockers, risk_flags } = read.value as unknown as PlannerAnswer;
  return ok({ status, next_step, fix_instructions, blockers, risk_flags });
}

/** Appended to a prompt. */
export function answerForm(allowedNext: readonly string[]): string {
  return [
    'Answer with exactly one JSON object and nothing before or after it. It must have all of these keys:',
    '',
    `  "status"            one of ${quoted(STATUSES)}`,
    `  "next_step"         ${quoted(nextSteps(allowedNext))}, or null`,
    '  "fix_instructions"  a string or an object for the agent that fixes it, or null',
    '  "blockers"          a list of strings or objects; empty if nothing blocks',
    '  "risk_flags"        a list of strings or objects; empty if there is no risk',
  ].join('\n');
}

/** The content, if the whole text is one fenced block. */
function withoutFence(text: string): string {
  const trimmed = text.trim();
  const [, fence = '', body = ''] = /^(`{3,}|~{3,})[ \t]*[A-Za-z0-9]*[ \t]*\n([\s\S]*)$/.exec(trimmed) ?? [];
  return fence !== '' && body.endsWith(`\n${fence}`) ? body.slice(0, -fence.length) : trimmed;
}

function problemsOf(answer: JsonMap, allowedNext: readonly string[]): readonly string[] {
  const problems: string[] = [];
  const check = (name: keyof PlannerAnswer, expected: string, fits: (value: Json) => boolean): void => {
    const value = own(answer, name);
    if (value === undefined) problems.push(`"${name}" is missing: it must be ${expected}`);
    else if (!fits(value)) problems.push(`"${name}" is ${shown(value)}: it must be ${expected}`);
  };
  const isList = (value: Json): boolean => Array.isArray(value) && (value as readonly Json[]).every(isTextOrMap);
  check('status', `one of ${STATUSES.join(', ')}`, (value) => (STATUSES as readonly Json[]).includes(value));
  const next = nextSteps(allowedNext);
  const isNext = (value: Json): boolean => value === null || (next as readonly Json[]).includes(value);
  check('next_step', `one of ${next.join(', ')}, or null`, isNext);
  check('fix_instructions', 'a string, an object, or null', (value) => value === null || isTextOrMap(value));
  check('blockers', 'a list of strings or objects', isList);
  check('risk_flags', 'a list of strings or objects', isList);
  return problems;
}

function isTextOrMap(value: Json): boolean {
  return typeof value === 'string' || isJsonMap(value);
}

function nextSteps(allowedNext: readonly string[]): readonly string[] {
  return [...new Set([...allowedNext, 'STOP'])];
}

function quoted(words: readonly string[]): string {
  return words.map((word) => JSON.stringify(word)).join(', ');
}

const SHOWN_MAX = 80;

function shown(value: Json): string {
  const text = JSON.stringify(value);
  return text.length <= SHOWN_MAX ? text : `${text.slice(0, SHOWN_MAX)}…`;
}

function bad(problems: readonly string[], allowedNext: readonly string[]): Result<PlannerAnswer, BadAnswer> {
  return err({
    message: `the answer is not valid: ${problems.join('; ')}`,
    reprompt: [
      'Your last answer cannot be used:',
      ...problems.map((problem) => `- ${problem}`),
      '',
      answerForm(allowedNext),
    ].join('\n'),
  });
}
