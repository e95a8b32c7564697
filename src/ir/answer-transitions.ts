// Reads the transitions in an answer, by the tags of a state machine; or refuses it with a reminder for the agent.
// Drivers call it; the kernel sees only the transitions.
//
// Values that a lane keeps from state to state (its folder, the adapter of its session) are in variables whose names
// begin with `@`, so that no tag or text can use them. A state entered without one uses the default of its block.

import type { Json } from '../base/json.ts';
import { own } from '../base/json.ts';
import { nearest } from '../base/nearest.ts';
import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';
import { parseDuration } from '../base/time.ts';
import type { Effect } from './effect.ts';
import type { Transition, Target } from './transition.ts';
import { targetOf } from './transition.ts';
import type { AllowedTransition, Machine, TransitionPolicy } from './machine.ts';
import { findState, implicitTransition, plainPath, quoted, TAG_RULES } from './machine.ts';
import type { RefusedAnswer } from './reminder.ts';
import { refuseAnswer } from './reminder.ts';
import type { Tag, TransitionTag } from './tags.ts';
import { readTags } from './tags.ts';
import type { ValueTemplate } from './text.ts';

/** Values that a lane keeps from state to state. */
export interface LaneContext {
  /** Relative to the folder of the run; empty is that folder. */
  readonly cwd: string;
  /** Adapter of its session; null if it has none yet. */
  readonly adapter: string | null;
  /** Nesting depth of workflows. */
  readonly depth: number;
}

export type AnswerTransitions =
  | {
      readonly kind: 'follows';
      readonly follows: readonly Transition[];
      /** Texts to show to the user. */
      readonly printed: readonly string[];
      /** New working directories, relative to the folder of the run; not checked yet. */
      readonly folders: readonly string[];
    }
  | RefusedAnswer;

/** Parameters of the blocks of states. */
export const LANE_VARIABLES = {
  /** Input of the state: `{{input}}` and `{{result}}`. */
  input: 'input',
  cwd: '@cwd',
  adapter: '@adapter',
  depth: '@depth',
  /** Only for the state that the tag enters. */
  model: '@model',
  effort: '@effort',
  /** For a question. */
  question: '@question',
  timeout: '@timeout',
  next: '@next',
  timeoutNext: '@timeout_next',
} as const;

/** Maximum nesting depth of workflows. */
export const WORKFLOW_DEPTH_MAX = 8;

/** The lane of a finished effect. A script keeps the session that it received, if any. */
export function laneContextOf({
  variables,
  session,
  spec,
}: Pick<Effect, 'variables' | 'session' | 'spec'>): LaneContext {
  const { [LANE_VARIABLES.cwd]: cwd, [LANE_VARIABLES.adapter]: adapter, [LANE_VARIABLES.depth]: depth } = variables;
  const hasSession = spec.kind === 'turn' || session.kind !== 'fresh';
  return {
    cwd: typeof cwd === 'string' ? cwd : '',
    adapter: hasSession && typeof adapter === 'string' && adapter !== '' ? adapter : null,
    depth: typeof depth === 'number' ? depth : 0,
  };
}

export function readTransitions(
  policy: TransitionPolicy,
  machine: Machine,
  lane: LaneContext,
  text: string,
): AnswerTransitions {
  const { tags, unclosed } = readTags(text);
  const implicit = implicitTransition(policy.allowed);
  const said = tags.filter(isTransition);
  const moves = implicit !== null && (policy.forced || said.length === 0) ? [tagFor(implicit)] : said;
  const read = resolveTags({ policy, machine, lane }, moves, unclosed);
  if (!read.ok) return refuseAnswer(policy, machine, read.error);
  const printed = tags.filter(({ name }) => name === 'print').map(({ content }) => withoutOuterLineEnds(content));
  return { kind: 'follows', ...read.value, printed };
}

interface ReadContext {
  readonly policy: TransitionPolicy;
  readonly machine: Machine;
  readonly lane: LaneContext;
}

interface ParsedTag extends Tag {
  readonly name: TransitionTag;
}

function isTransition(tag: Tag): tag is ParsedTag {
  return tag.name !== 'print';
}

/** A tag with its names resolved. */
interface ResolvedTag {
  readonly tag: ParsedTag;
  /** The target state or workflow; null for a return. */
  readonly to: { readonly name: string; readonly block: string } | null;
  /** Names of blocks. */
  readonly returnTo: string | null;
  readonly next: string | null;
  readonly onTimeout: string | null;
}

type ReadResult = Pick<Extract<AnswerTransitions, { kind: 'follows' }>, 'follows' | 'folders'>;

function resolveTags(
  context: ReadContext,
  tags: readonly ParsedTag[],
  unclosed: readonly string[],
): Result<ReadResult, string> {
  const said = context.policy.speaker === 'script' ? 'output' : 'answer';
  const [first, ...rest] = tags;
  if (first === undefined) {
    const [open] = unclosed;
    return err(`the ${said} has no transition tag${open === undefined ? '' : `; <${open}> has no </${open}>`}`);
  }
  const invalid = tags.find(({ error }) => error !== null);
  if (invalid?.error !== undefined && invalid.error !== null) return err(invalid.error);
  const forks = tags.filter(isFork);
  const others = tags.filter((tag) => !isFork(tag));
  const [other, another] = others;
  const canBeCombined = forks.length > 0 && another === undefined && (other === undefined || other.name === 'goto');
  if (rest.length > 0 && !canBeCombined) {
    const names = tags.slice(0, 5).map(({ name }) => name);
    const list = `${names.join(', ')}${tags.length > names.length ? ' …' : ''}`;
    return err(`the ${said} has ${String(tags.length)} transition tags (${list}), but must have one`);
  }
  const moves: ResolvedTag[] = [];
  for (const tag of tags) {
    const move = resolveTag(context.machine, tag, other?.name === 'goto' && isFork(tag) ? other.content : null);
    if (!move.ok) return move;
    moves.push(move.value);
  }
  if (new Set(moves.map(({ tag, to, next }) => (isFork(tag) ? next : to?.block))).size > 1 && forks.length > 0)
    return err(`the forks of the ${said} do not continue at the same state`);
  return transitionsFor(context, moves);
}

function transitionsFor(context: ReadContext, moves: readonly ResolvedTag[]): Result<ReadResult, string> {
  const follows: Transition[] = [];
  const folders: string[] = [];
  for (const move of moves) {
    const allowed = checkAllowed(context, move);
    if (!allowed.ok) return allowed;
    const variables = variablesOf(context, move, allowed.value);
    if (!variables.ok) return variables;
    if (own(move.tag.attributes, 'cd') !== undefined) folders.push(plainCwd(context.lane, move.tag));
    const follow = transitionFor(context, move, variables.value, allowed.value);
    if (!follow.ok) return follow;
    follows.push(follow.value);
  }
  // After forks, the lane continues as with a goto.
  const next = moves.every(({ tag }) => isFork(tag)) ? (moves[0]?.next ?? null) : null;
  if (next !== null) {
    const target = targetOf(next, laneVariables(context.lane));
    follows.push({ kind: 'goto', target, session: 'resume', dropCallers: false });
  }
  return ok({ follows, folders });
}

function isFork({ name }: ParsedTag): boolean {
  return name === 'fork' || name === 'fork-workflow';
}

function transitionFor(
  { machine, policy, lane }: ReadContext,
  { tag, to, returnTo, next, onTimeout }: ResolvedTag,
  variables: Variables,
  allowed: AllowedTransition | null,
): Result<Transition, string> {
  const target = targetOf(to?.block ?? '', variables);
  switch (tag.name) {
    case 'goto':
      return ok({ kind: 'goto', target, session: 'resume', dropCallers: false });
    case 'reset':
    case 'reset-workflow':
      return ok({ kind: 'goto', target, session: 'fresh', dropCallers: !machine.keepsCallers });
    case 'call':
    case 'function':
    case 'call-workflow':
    case 'function-workflow':
      return ok({ kind: 'call', target, returnTo: returnTarget(returnTo ?? '', lane), session: callSession(tag.name) });
    case 'fork':
    case 'fork-workflow':
      return ok({ kind: 'fork', target, name: forkName(to?.name ?? '') });
    case 'result': {
      const value = policy.speaker === 'script' ? tag.content : withoutOuterLineEnds(tag.content);
      return ok({ kind: 'return', value: { kind: 'literal', value } });
    }
    case 'ask': {
      const planned = allowed?.timeoutNext ?? null;
      const instead = onTimeout ?? (planned === null ? null : (own(machine.states, planned) ?? null));
      return askTransition(machine, tag, { variables, next: next ?? '', onTimeout: instead }, allowed);
    }
  }
}

function askTransition(
  { asks }: Machine,
  { attributes, content }: ParsedTag,
  {
    variables,
    next,
    onTimeout,
  }: { readonly variables: Variables; readonly next: string; readonly onTimeout: string | null },
  allowed: AllowedTransition | null,
): Result<Transition, string> {
  const asked = content.trim();
  if (asked === '') return err('<ask> has no question');
  const timeout = own(attributes, 'timeout') ?? allowed?.timeout ?? null;
  if (timeout === null && onTimeout !== null) return err('<ask> has timeout_next but no timeout');
  if (timeout !== null && parseDuration(timeout) === null)
    return err(`${quoted(timeout)} is not a duration for <ask> (write 30m, 24h, 7d)`);
  const block = timeout === null ? asks.open : onTimeout === null ? asks.timed : asks.routed;
  const asking: Variables = {
    ...variables,
    [LANE_VARIABLES.question]: literal(asked),
    [LANE_VARIABLES.next]: literal(next),
    ...(timeout === null ? {} : { [LANE_VARIABLES.timeout]: literal(timeout) }),
    ...(onTimeout === null ? {} : { [LANE_VARIABLES.timeoutNext]: literal(onTimeout) }),
  };
  return ok({ kind: 'goto', target: targetOf(block, asking), session: 'resume', dropCallers: false });
}

/** `beside`: target of a goto in the same answer, for a fork without `next`. */
function resolveTag(machine: Machine, tag: ParsedTag, beside: string | null): Result<ResolvedTag, string> {
  const { name, attributes, content } = tag;
  const { requiredAttribute } = TAG_RULES[name];
  const find = (attribute: string, written: string | undefined, needed: boolean): Result<string | null, string> => {
    if (written === undefined)
      return needed ? err(`<${name}> has no ${attribute}="…", which names the state to continue at`) : ok(null);
    const found = stateIn(machine, written);
    return found.ok ? ok(found.value.block) : err(`${attribute} of <${name}>: ${found.error}`);
  };
  const to = destination(machine, name, content);
  if (!to.ok) return err(`<${name}>: ${to.error}`);
  const returnTo = find('return', own(attributes, 'return'), requiredAttribute === 'return');
  if (!returnTo.ok) return returnTo;
  const next = find('next', own(attributes, 'next') ?? beside ?? undefined, requiredAttribute === 'next');
  if (!next.ok) return next;
  const onTimeout = find('timeout_next', own(attributes, 'timeout_next'), false);
  if (!onTimeout.ok) return onTimeout;
  return ok({ tag, to: to.value, returnTo: returnTo.value, next: next.value, onTimeout: onTimeout.value });
}

function destination(machine: Machine, name: TransitionTag, content: string): Result<ResolvedTag['to'], string> {
  const { target } = TAG_RULES[name];
  if (target === 'back') return ok(null);
  if (target === 'state') return stateIn(machine, content);
  const path = plainPath(content.trim());
  const block = own(machine.workflows, path);
  if (block !== undefined) return ok({ name: path, block });
  return err(`${quoted(content.trim())} is not a workflow that this one refers to`);
}

function stateIn(machine: Machine, written: string): ReturnType<typeof findState> {
  const found = findState(machine, written);
  const near = found.ok ? null : nearest(written.trim(), Object.keys(machine.states));
  return found.ok || near === null ? found : err(`${found.error}; did you mean ${near}?`);
}

/** The policy entry that allows it; null without a policy. */
function checkAllowed({ policy, machine }: ReadContext, move: ResolvedTag): Result<AllowedTransition | null, string> {
  const { allowed } = policy;
  if (allowed === null) return ok(null);
  const match = allowed.find((each) => matchesAllowed(machine, each, move));
  if (match !== undefined) return ok(match);
  const { tag } = move;
  if (!allowed.some((each) => each.tag === tag.name)) return err(`<${tag.name}> is not allowed here`);
  return err(`<${tag.name}> is allowed here, but not as ${writtenTag(tag)}`);
}

function matchesAllowed(
  machine: Machine,
  allowed: AllowedTransition,
  { tag, to, returnTo, next, onTimeout }: ResolvedTag,
): boolean {
  const blockOf = (name: string): string | undefined => own(machine.states, name);
  const input = own(tag.attributes, 'input');
  const timeout = own(tag.attributes, 'timeout');
  return (
    allowed.tag === tag.name &&
    (allowed.target === null ||
      (TAG_RULES[tag.name].target === 'workflow' ? own(machine.workflows, allowed.target) : blockOf(allowed.target)) ===
        to?.block) &&
    (allowed.return === null || blockOf(allowed.return) === returnTo) &&
    (allowed.next === null || blockOf(allowed.next) === next) &&
    (allowed.payload === null || allowed.payload.trim() === tag.content.trim()) &&
    (allowed.timeoutNext === null || onTimeout === null || blockOf(allowed.timeoutNext) === onTimeout) &&
    (allowed.timeout === null || timeout === undefined || timeout === allowed.timeout) &&
    (typeof allowed.input !== 'string' || input === undefined || input === allowed.input)
  );
}

type Variables = Readonly<Record<string, ValueTemplate>>;

/** Attributes of a fork that are not passed to its worker as variables. */
const RESERVED_ATTRIBUTES: ReadonlySet<string> = new Set(['next', 'input', 'cd', 'model', 'effort', 'adapter']);

/** Variables for the entered block. */
function variablesOf(
  context: ReadContext,
  move: ResolvedTag,
  allowed: AllowedTransition | null,
): Result<Variables, string> {
  const { lane, machine } = context;
  const { tag } = move;
  const { name, attributes } = tag;
  const fresh = TAG_RULES[name].session === 'fresh';
  const { cd, adapter, model, effort } = attributes;
  if (cd !== undefined && !fresh) return err(`<${name}> continues its session, so it cannot change its folder with cd`);
  if (cd?.trim() === '' || cd?.includes('\0') === true) return err(`cd of <${name}> does not name a folder`);
  const other = conflictingAdapter(context, move);
  if (other !== null)
    return err(`<${name}> continues a session of ${String(lane.adapter)}, so it cannot use ${other}; use <reset>`);
  const depth = lane.depth + (entersDeeper(name) ? 1 : 0);
  if (depth > WORKFLOW_DEPTH_MAX)
    return err(`<${name}> would nest workflows more than ${String(WORKFLOW_DEPTH_MAX)} deep`);
  const input = inputOf(tag, allowed);
  // Without a session, the state after the question chooses the adapter.
  const chosen = fresh ? (adapter ?? null) : (lane.adapter ?? own(machine.adapters, move.next ?? '') ?? null);
  return ok({
    ...(isFork(tag) ? attributesOf(tag) : {}),
    ...laneVariables({ cwd: cd === undefined ? lane.cwd : plainCwd(lane, tag), adapter: chosen, depth }),
    ...(input === null ? {} : { [LANE_VARIABLES.input]: input }),
    ...(model === undefined ? {} : { [LANE_VARIABLES.model]: literal(model) }),
    ...(effort === undefined ? {} : { [LANE_VARIABLES.effort]: literal(effort) }),
  });
}

/** An adapter that cannot resume the lane's session. */
function conflictingAdapter(
  { machine, lane }: ReadContext,
  { tag, to, returnTo, next, onTimeout }: ResolvedTag,
): string | null {
  const fresh = TAG_RULES[tag.name].session === 'fresh';
  const continues = fresh ? [returnTo, next] : [to?.block ?? null, returnTo, next, onTimeout];
  const wanted = continues.flatMap((block) => own(machine.adapters, block ?? '') ?? []);
  const said = fresh ? undefined : own(tag.attributes, 'adapter');
  const all = said === undefined ? wanted : [said, ...wanted];
  return lane.adapter === null ? null : (all.find((adapter) => adapter !== lane.adapter) ?? null);
}

function attributesOf({ attributes }: ParsedTag): Variables {
  const given = Object.entries(attributes).filter(([key]) => !RESERVED_ATTRIBUTES.has(key));
  return Object.fromEntries(given.map(([key, value]) => [key, literal(value)]));
}

function inputOf({ attributes }: ParsedTag, allowed: AllowedTransition | null): ValueTemplate | null {
  const said = own(attributes, 'input');
  if (said !== undefined) return literal(said);
  const planned = allowed?.input ?? null;
  return planned === null ? null : { kind: 'text', text: planned };
}

/** Only values that differ from the defaults of blocks. */
function laneVariables({ cwd, adapter, depth }: LaneContext): Variables {
  return {
    ...(cwd === '' ? {} : { [LANE_VARIABLES.cwd]: literal(cwd) }),
    ...(adapter === null ? {} : { [LANE_VARIABLES.adapter]: literal(adapter) }),
    ...(depth === 0 ? {} : { [LANE_VARIABLES.depth]: literal(depth) }),
  };
}

/** The caller continues in its own folder, with its own adapter. */
function returnTarget(block: string, lane: LaneContext): Target {
  const result: ValueTemplate = { kind: 'text', text: { parts: [{ path: ['result'], quote: [] }] } };
  return targetOf(block, { ...laneVariables(lane), [LANE_VARIABLES.input]: result });
}

function plainCwd({ cwd }: LaneContext, { attributes }: ParsedTag): string {
  const path = (own(attributes, 'cd') ?? '').trim();
  return plainPath(path.startsWith('/') || cwd === '' ? path : `${cwd}/${path}`);
}

function callSession(name: TransitionTag): 'fork' | 'fresh' {
  return TAG_RULES[name].session === 'fresh' ? 'fresh' : 'fork';
}

function entersDeeper(name: TransitionTag): boolean {
  return TAG_RULES[name].target === 'workflow' && name !== 'reset-workflow';
}

/** From the worker's state or the folder of its workflow: `main_worker1`. */
function forkName(path: string): string {
  const last = path.slice(path.lastIndexOf('/') + 1).replace(/(?<=.)\.[^.]*$/, '');
  return last
    .toLowerCase()
    .replaceAll(/[^a-z0-9_-]/g, '')
    .slice(0, 6);
}

function withoutOuterLineEnds(text: string): string {
  return text.replace(/^\r?\n/, '').replace(/\r?\n$/, '');
}

function literal(value: Json): ValueTemplate {
  return { kind: 'literal', value };
}

function writtenTag({ name, attributes, content }: ParsedTag): string {
  const pairs = Object.entries(attributes).map(([key, value]) => ` ${key}=${quoted(value)}`);
  const inside = content.trim();
  return `<${name}${pairs.join('')}>${inside.length > 80 ? `${inside.slice(0, 80)}…` : inside}</${name}>`;
}

/** The tag that an allowed transition stands for. */
function tagFor({ tag, target, return: back, next, payload }: AllowedTransition): ParsedTag {
  const attributes = { ...(back === null ? {} : { return: back }), ...(next === null ? {} : { next }) };
  return { name: tag, attributes, content: target ?? payload ?? '', from: 0, to: 0, error: null };
}
