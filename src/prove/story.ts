// A counterexample as a `[[test]]` table that reproduces it under `meow test`.
//
// story/1  Every rule is optional and names one step by its id, so that the test never fails by its own rules.
// story/2  Each outcome arrives as long after the start of its step as on the path, so that the order is the same.
// story/3  What has no outcome on the path takes a year.
// story/4  There is no test if no rule can make it happen: an agent that does not start, or a gate that is decided in two
//          ways in each round of a loop.

import { segmentMatcher } from '../base/names.ts';
import type { Json, JsonMap } from '../base/json.ts';
import { type Claim, claimText } from '../ir/claim.ts';
import type { Counterexample } from './claims.ts';
import type { Edge, Explored } from './explore.ts';
import type { Cause, Caused } from './causes.ts';
import { toEnd } from './paths.ts';

/** `number`: of the claim in its file, from 1. `given`: variables of the run. */
export type NamedTest = Readonly<{ number: number; given: JsonMap }>;

/** Null if no test can reproduce it. */
export function testOf(
  explored: Explored,
  claim: Claim,
  { number, given }: NamedTest,
  { path, round }: Counterexample,
): string | null {
  const straight = round.length > 0 ? path : toEnd(explored, path);
  const all = explored.retrace([...straight, ...round]);
  const whole = all.slice(0, straight.length);
  const events = merged(all.map(({ cause, at }) => ({ cause, at })));
  const files = filesIn(events);
  const isRound = ({ at }: Happened): boolean => round.length > 0 && at > (whole.at(-1)?.at ?? 0);
  if (files === null || !canBeTested(events, events.filter(isRound))) return null;
  const { ending = null, hangs = [] } = explored.nodes[whole.at(-1)?.to ?? 0] ?? {};
  const gates = new Set(events.flatMap(({ cause }) => (cause.kind === 'decides' ? [cause.gate] : [])));
  const rules = events.flatMap((each) => ruleOf(each, isRound(each) ? 'always' : 'once', gates) ?? []);
  const run = ending?.status ?? (hangs.length > 0 ? 'waiting' : null);
  return [
    '[[test]]',
    `name = ${quoted(`counterexample to claim ${String(number)}: ${claimText(claim)}`)}`,
    ...(Object.keys(given).length === 0 ? [] : [`variables = ${tomlOf(given)}`]),
    ...(Object.keys(files).length === 0 ? [] : [`files = ${tomlOf(files)}`]),
    ...(round.length === 0 ? [] : [`max_records = ${String(RECORDS_MIN + RECORDS_PER_MOVE * events.length)}`]),
    ...rules,
    ...REST,
    '',
    '[test.expect]',
    ...(run === null ? [] : [`run = ${quoted(run)}`]),
    ...expectationOf(claim, whole),
    '',
  ].join('\n');
}

/** A run that never ends has more records than this. */
const RECORDS_MIN = 100;
const RECORDS_PER_MOVE = 20;

/** What the world did, and when, on the logical clock. */
interface Happened {
  readonly cause: Cause;
  readonly at: number;
}

/** A judgement of the engine belongs to the answer that it judged. */
function merged(all: readonly Happened[]): readonly Happened[] {
  const result: Happened[] = [];
  for (const each of all) {
    const { cause } = each;
    if (cause.kind !== 'judged') {
      result.push(each);
      continue;
    }
    const at = result.findLastIndex((before) => 'step' in before.cause && before.cause.step === cause.step);
    const before = result[at];
    if (before !== undefined) result[at] = { ...before, cause: judgedCause(before.cause, cause) };
  }
  return result;
}

function judgedCause(before: Cause, { answer, violates }: Extract<Cause, { kind: 'judged' }>): Cause {
  switch (before.kind) {
    case 'exit':
      return { ...before, stdout: answer ?? before.stdout };
    case 'reports':
    case 'answers': {
      const text = answer ?? (before.kind === 'answers' ? before.text : 'Done.');
      return { kind: 'answers', step: before.step, since: before.since, text, violates };
    }
    case 'dies':
    case 'hangs':
      return violates ? { ...before, violates } : before;
    default:
      return before;
  }
}

/** Rules for a round hold for all its visits. */
function canBeTested(all: readonly Happened[], round: readonly Happened[]): boolean {
  const decided = new Map<string, string>();
  if (all.some(({ cause }) => cause.kind === 'beyond-tests')) return false;
  return round.every(({ cause }) => {
    if (cause.kind !== 'decides' && cause.kind !== 'expires') return true;
    const how = cause.kind === 'expires' ? 'expires' : String(cause.approved);
    const known = decided.get(cause.gate) ?? how;
    decided.set(cause.gate, how);
    return known === how;
  });
}

/** Files that the run reads; null if one of them must have two contents. */
function filesIn(all: readonly Happened[]): Readonly<Record<string, string>> | null {
  const files = new Map<string, string | null>();
  for (const { cause } of all) {
    if (cause.kind !== 'reads') continue;
    if ((files.get(cause.path) ?? cause.text) !== cause.text) return null;
    files.set(cause.path, cause.text);
  }
  return Object.fromEntries([...files].flatMap(([path, text]) => (text === null ? [] : [[path, text]])));
}

const A_YEAR = '8760h';
/** Calls that the test itself answers, if they are the whole command. */
const OWN_CALL = String.raw`\s*(?:exec\s+)?meow\s+(?:await-approval|await-event|event|step-status)\b[^;&|<>()$\x60#\n]*`;
const REST = [
  '',
  '[[test.command]]',
  'step = "*"',
  `script = ${quoted(`/^(?!${OWN_CALL}$)/`)}`,
  `takes = ${quoted(A_YEAR)}`,
  'optional = true',
];

/** What the claim promises, as far as an expectation can say it. */
function expectationOf(claim: Claim, path: readonly Edge[]): readonly string[] {
  switch (claim.kind) {
    case 'never':
      return [`never = [${startedBy(path, claim.step).map(quoted).join(', ')}]`];
    case 'always':
      return [`visits = { ${quoted(claim.step)} = ">= 1" }`];
    case 'at-most': {
      const { turns, usd, visits } = claim.limits;
      const cost = [
        ...(turns === undefined ? [] : [`turns = "<= ${String(turns)}"`]),
        ...(usd === undefined ? [] : [`usd = "<= ${String(usd)}"`]),
      ];
      const counts = Object.entries(visits).map(([step, limit]) => `${quoted(step)} = "<= ${String(limit)}"`);
      return [
        ...(cost.length === 0 ? [] : [`cost = { ${cost.join(', ')} }`]),
        ...(counts.length === 0 ? [] : [`visits = { ${counts.join(', ')} }`]),
      ];
    }
    case 'alone':
    case 'ends':
    case 'cleaned':
      return [];
  }
}

/** The pattern itself, if it is one: a test matches ids, and the path knows names. */
function startedBy(path: readonly Edge[], pattern: string): readonly string[] {
  const matches = segmentMatcher(pattern);
  const started = path.flatMap((edge) => edge.started).filter((name) => matches(name));
  return started.length === 0 ? [pattern] : [...new Set(started)];
}

/** `once`: for the id of the step; `always`: for every visit of it. `decided`: gates that somebody decides on the path. */
function ruleOf(
  { cause, at }: Happened,
  how: 'once' | 'always',
  decided: ReadonlySet<string>,
): readonly string[] | null {
  if (!('step' in cause)) return null;
  if (cause.kind === 'expires' && !decided.has(cause.gate)) return null;
  const delay = Math.max(0, at - cause.since);
  const step = how === 'once' ? cause.step : anyVisit(cause.step);
  const times = how === 'once' ? ['times = 1'] : [];
  const body = bodyOf(cause, delay, at);
  if (body === null) return null;
  const [table, ...lines] = body;
  const isGate = cause.kind === 'decides' || cause.kind === 'expires';
  const where = isGate ? times : cause.kind === 'emits' ? [] : [`step = ${quoted(step)}`, ...times];
  return ['', table ?? '', ...where, ...lines, 'optional = true'];
}

function bodyOf(cause: Extract<Cause, Caused>, delay: number, at: number): readonly string[] | null {
  const after = `"${String(delay)}ms"`;
  const violation = 'violates' in cause && cause.violates ? [VIOLATION] : [];
  const act = (...actions: readonly string[]): readonly string[] => [
    '[[test.on]]',
    `do = [${[...(delay > 0 ? [`{ wait = ${after} }`] : []), ...violation, ...actions].join(', ')}]`,
  ];
  switch (cause.kind) {
    case 'exit':
      return [
        '[[test.command]]',
        `exit = ${String(cause.exit)}`,
        ...(cause.stdout === null ? [] : [`stdout = ${quoted(`${cause.stdout}\n`)}`]),
        ...(Object.keys(cause.files).length === 0 ? [] : [`files = ${tomlOf(cause.files)}`]),
        `takes = ${after}`,
      ];
    case 'hangs':
      return cause.isCommand ? ['[[test.command]]', 'hangs = true'] : act('{ hang = true }');
    case 'reports':
      return act(`{ done = ${Object.keys(cause.outputs).length === 0 ? 'true' : tomlOf(cause.outputs)} }`);
    case 'answers':
      return act(`{ say = ${quoted(cause.text)} }`);
    case 'dies':
      return act('{ crash = 1 }');
    case 'decides':
      return [
        '[[test.gate]]',
        `gate = ${quoted(cause.gate)}`,
        `decide = ${quoted(cause.approved ? 'approve' : 'reject')}`,
        ...(cause.by === null ? [] : [`by = ${quoted(cause.by)}`]),
        `after = ${after}`,
      ];
    case 'emits':
      return ['[[test.event]]', `type = ${quoted(cause.event)}`, `after = "${String(at)}ms"`];
    case 'expires':
      return ['[[test.gate]]', `gate = ${quoted(cause.gate)}`, 'decide = "approve"', `after = ${quoted(A_YEAR)}`];
    case 'judged':
    case 'reads':
      return null;
  }
}

/** Every policy forbids it. */
const VIOLATION = `{ run = "git config core.hooksPath elsewhere" }`;

/** `main.3.REVIEW` is `*.REVIEW`, `fix#2` is `fix#*`, and `first.more.more.work`, of a recursion, is `first.*.work`. */
function anyVisit(id: string): string {
  if (id.includes('#')) return id.replace(/#\d+/, '#*');
  const visits = id.replaceAll(/(^|\.)\d+(?=\.)/g, '$1*').replace(/^[^.]+\.\*\./, '*.');
  return visits.replace(/((?:[^.*]+\.)+?)\1+/, '*.');
}

function tomlOf(value: Json): string {
  if (value === null) return '""';
  if (typeof value === 'string') return quoted(value);
  if (typeof value !== 'object') return String(value);
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(tomlOf).join(', ')}]`;
  const entries = Object.entries(value as Readonly<Record<string, Json>>);
  return entries.length === 0
    ? '{}'
    : `{ ${entries.map(([key, item]) => `${keyOf(key)} = ${tomlOf(item)}`).join(', ')} }`;
}

function keyOf(key: string): string {
  return /^[\w-]+$/.test(key) ? key : quoted(key);
}

/** JSON's escapes are also TOML's. */
function quoted(text: string): string {
  return JSON.stringify(text).replaceAll('\u007f', String.raw`\u007f`);
}
