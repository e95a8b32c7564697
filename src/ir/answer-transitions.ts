// Reads the transitions in an answer, by the tags of a state machine; or refuses it with a reminder for the agent.
// Drivers call it; the kernel sees only the transitions.
//
// Values that a lane keeps from state to state (its folder, the adapter of its session) are in variables whose names
// begin with `@`, so that no tag or text can use them. A state entered without one uses the default of its block.

import { err, mapAll, ok, type Result } from '../base/errors.ts';
import { type Json, own } from '../base/json.ts';
import { nearest } from '../base/names.ts';
import { parseDuration } from '../base/time.ts';
import { APPROVER_FORMS, isAgent, isApprover } from './approvers.ts';
import type { Effect } from './effect.ts';
import type { AllowedTransition, FoundState, Machine, TransitionPolicy } from './machine.ts';
import { findState, implicitTransition, plainPath, quoted, TAG_RULES } from './machine.ts';
import { refuseAnswer, type RefusedAnswer } from './reminder.ts';
import { isFork, readTags, type Tag, type TransitionTag } from './tags.ts';
import type { ValueTemplate } from './text.ts';
import { type Target, targetOf, type Transition } from './transition.ts';

/** Values that a lane keeps from state to state. */
export interface LaneContext {
  /** Relative to the folder of the run; empty is that folder. */
  readonly cwd: string;
  /** Adapter of its session; null if it has none yet. */
  readonly adapter: string | null;
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

export const LANE_VARIABLES = {
  /** Input of the state: `{{input}}` and `{{result}}`. */
  input: 'input',
  cwd: '@cwd',
  adapter: '@adapter',
  depth: '@depth',
  /** Only for the state that the tag enters. */
  model: '@model',
  effort: '@effort',
  question: '@question',
  timeout: '@timeout',
  next: '@next',
  timeoutNext: '@timeout_next',
  /** One a line. */
  approvers: '@approvers',
} as const;

export const WORKFLOW_DEPTH_MAX = 8;

/** The lane of a finished effect. A script keeps the session that it received, if any. */
export function laneContextOf(effect: Pick<Effect, 'variables' | 'session' | 'spec'>): LaneContext {
  const { variables, session, spec } = effect;
  const { [LANE_VARIABLES.cwd]: cwd, [LANE_VARIABLES.adapter]: adapter, [LANE_VARIABLES.depth]: depth } = variables;
  const hasSession = spec.kind === 'turn' || session.kind !== 'fresh';
  return {
    cwd: typeof cwd === 'string' ? cwd : '',
    adapter: hasSession && typeof adapter === 'string' && adapter !== '' ? adapter : null,
    depth: typeof depth === 'number' ? depth : 0,
  };
}

/** Finds the entry block of a workflow that the machine does not name, or says why that fails. */
export type EnterWorkflow = (path: string) => Result<string, string>;

export function readTransitions(
  policy: TransitionPolicy,
  machine: Machine,
  lane: LaneContext,
  text: string,
  enter: EnterWorkflow = (path) => err(`${quoted(path)} is not a workflow that this one refers to`),
): AnswerTransitions {
  const { tags, unclosed } = readTags(text);
  const implicit = implicitTransition(policy.allowed);
  const written = tags.filter(isTransition);
  const moves = implicit !== null && (policy.forced || written.length === 0) ? [tagFor(implicit)] : written;
  const read = resolveTags({ policy, machine, lane, enter }, moves, unclosed);
  if (!read.ok) return refuseAnswer(policy, machine, read.error);
  return { kind: 'follows', ...read.value, printed: printedIn(tags) };
}

/** Texts that a message or a line shows to the user, as soon as it is there. */
export function printedTexts(text: string): readonly string[] {
  return text.includes('<print') ? printedIn(readTags(text).tags) : [];
}

function printedIn(tags: readonly Tag[]): readonly string[] {
  return tags.filter(({ name }) => name === 'print').map(({ content }) => withoutOuterLineEnds(content));
}

type ReadContext = Readonly<{
  policy: TransitionPolicy;
  machine: Machine;
  lane: LaneContext;
  enter: EnterWorkflow;
}>;

type ParsedTag = Tag & { readonly name: TransitionTag };

function isTransition(tag: Tag): tag is ParsedTag {
  return tag.name !== 'print';
}

interface ResolvedTag {
  readonly tag: ParsedTag;
  /** The target state or workflow; null for a return. */
  readonly to: FoundState | null;
  /** Names of blocks. */
  readonly returnTo: string | null;
  readonly next: string | null;
  readonly onTimeout: string | null;
}

/** `allowed`: the policy entry that allows it; null without a policy. */
type Move = ResolvedTag & { readonly allowed: AllowedTransition | null };

type ReadResult = Pick<Extract<AnswerTransitions, { kind: 'follows' }>, 'follows' | 'folders'>;

function resolveTags(
  context: ReadContext,
  tags: readonly ParsedTag[],
  unclosed: readonly string[],
): Result<ReadResult, string> {
  const source = context.policy.speaker === 'script' ? 'output' : 'answer';
  const [first, ...rest] = tags;
  if (first === undefined) {
    const [open] = unclosed;
    return err(`the ${source} has no transition tag${open === undefined ? '' : `; <${open}> has no </${open}>`}`);
  }
  const [invalid] = tags.flatMap(({ error }) => error ?? []);
  if (invalid !== undefined) return err(invalid);
  const forks = tags.filter(({ name }) => isFork(name));
  const others = tags.filter(({ name }) => !isFork(name));
  const [other, another] = others;
  const canBeCombined = forks.length > 0 && another === undefined && (other === undefined || other.name === 'goto');
  if (rest.length > 0 && !canBeCombined) {
    const names = tags.slice(0, 5).map(({ name }) => name);
    const list = `${names.join(', ')}${tags.length > names.length ? ' …' : ''}`;
    return err(`the ${source} has ${String(tags.length)} transition tags (${list}), but must have one`);
  }
  const moves = mapAll(tags, (tag) =>
    resolveTag(context, tag, other?.name === 'goto' && isFork(tag.name) ? other.content : null),
  );
  if (!moves.ok) return moves;
  if (
    new Set(moves.value.map(({ tag, to, next }) => (isFork(tag.name) ? next : to?.block))).size > 1 &&
    forks.length > 0
  )
    return err(`the forks of the ${source} do not continue at the same state`);
  return transitionsFor(context, moves.value);
}

function transitionsFor(context: ReadContext, moves: readonly ResolvedTag[]): Result<ReadResult, string> {
  const follows = mapAll(moves, (resolved) => {
    const move = checkAllowed(context, resolved);
    if (!move.ok) return move;
    const variables = variablesOf(context, move.value);
    return variables.ok ? transitionFor(context, move.value, variables.value) : variables;
  });
  if (!follows.ok) return follows;
  const folders = moves.flatMap(({ tag }) =>
    own(tag.attributes, 'cd') === undefined ? [] : [plainCwd(context.lane, tag)],
  );
  // After forks, the lane continues as with a goto.
  const next = moves.every(({ tag }) => isFork(tag.name)) ? (moves[0]?.next ?? null) : null;
  const last = next === null ? [] : [resumeAt(targetOf(next, laneVariables(context.lane)))];
  return ok({ follows: [...follows.value, ...last], folders });
}

function resumeAt(target: Target): Transition {
  return { kind: 'goto', target, session: 'resume', dropCallers: false };
}

function transitionFor(context: ReadContext, move: Move, variables: Variables): Result<Transition, string> {
  const { machine, policy, lane } = context;
  const { tag, to, returnTo } = move;
  const target = targetOf(to?.block ?? '', variables);
  switch (tag.name) {
    case 'goto':
      return ok(resumeAt(target));
    case 'reset':
    case 'reset-workflow':
      return ok({ kind: 'goto', target, session: 'fresh', dropCallers: !machine.keepsCallers });
    case 'call':
    case 'function':
    case 'call-workflow':
    case 'function-workflow': {
      const session = TAG_RULES[tag.name].session === 'fresh' ? 'fresh' : 'fork';
      // The caller continues in its own folder, with its own adapter.
      const back = targetOf(returnTo ?? '', { ...laneVariables(lane), [LANE_VARIABLES.input]: RESULT });
      return ok({ kind: 'call', target, returnTo: back, session });
    }
    case 'fork':
    case 'fork-workflow':
      return ok({ kind: 'fork', target, name: forkName(to?.name ?? '') });
    case 'result':
      return ok({
        kind: 'return',
        value: literal(policy.speaker === 'script' ? tag.content : withoutOuterLineEnds(tag.content)),
      });
    case 'ask':
      return askTransition(machine, move, variables);
  }
}

const RESULT: ValueTemplate = { kind: 'text', text: { parts: [{ path: ['result'], quote: [] }] } };

function askTransition({ asks, states }: Machine, move: Move, variables: Variables): Result<Transition, string> {
  const { tag, next, onTimeout, allowed } = move;
  const question = tag.content.trim();
  if (question === '') return err('<ask> has no question');
  const timeout = own(tag.attributes, 'timeout') ?? allowed?.timeout ?? null;
  const timeoutNext = onTimeout ?? own(states, allowed?.timeoutNext ?? '') ?? null;
  if (timeout === null && timeoutNext !== null) return err('<ask> has timeout_next but no timeout');
  if (timeout !== null && parseDuration(timeout) === null)
    return err(`${quoted(timeout)} is not a duration for <ask> (write 30m, 24h, 7d)`);
  const approver = own(tag.attributes, 'approver') ?? allowed?.approver ?? null;
  const approvers = approver?.split(',').map((entry) => entry.trim()) ?? null;
  if (approvers?.every(isApprover) === false)
    return err(
      `${quoted(approver ?? '')} does not name who decides <ask> (write ${APPROVER_FORMS}, with commas between)`,
    );
  // Otherwise an agent could let another one decide what people are to decide.
  if (allowed !== null && (allowed.approver ?? null) === null && approvers?.some(isAgent))
    return err('<ask> may name an agent as its approver only if allowed_transitions does');
  const block = timeout === null ? asks.open : timeoutNext === null ? asks.timed : asks.routed;
  const asked = literals({
    [LANE_VARIABLES.question]: question,
    [LANE_VARIABLES.next]: next ?? '',
    [LANE_VARIABLES.timeout]: timeout,
    [LANE_VARIABLES.timeoutNext]: timeoutNext,
    [LANE_VARIABLES.approvers]: approvers?.join('\n'),
  });
  return ok(resumeAt(targetOf(block, { ...variables, ...asked })));
}

/** `beside`: target of a goto in the same answer, for a fork without `next`. */
function resolveTag(context: ReadContext, tag: ParsedTag, beside: string | null): Result<ResolvedTag, string> {
  const { machine } = context;
  const { name, attributes, content } = tag;
  const { requiredAttribute } = TAG_RULES[name];
  const to = destination(context, name, content);
  if (!to.ok) return err(`<${name}>: ${to.error}`);
  const blocks = mapAll(['return', 'next', 'timeout_next'], (attribute): Result<string | null, string> => {
    const written = own(attributes, attribute) ?? (attribute === 'next' ? beside : null);
    if (written === null) {
      if (attribute !== requiredAttribute) return ok(null);
      return err(`<${name}> has no ${attribute}="…", which names the state to continue at`);
    }
    const found = stateIn(machine, written);
    return found.ok ? ok(found.value.block) : err(`${attribute} of <${name}>: ${found.error}`);
  });
  if (!blocks.ok) return blocks;
  const [returnTo = null, next = null, onTimeout = null] = blocks.value;
  return ok({ tag, to: to.value, returnTo, next, onTimeout });
}

function destination(context: ReadContext, name: TransitionTag, content: string): Result<FoundState | null, string> {
  const { machine, policy, enter } = context;
  const { target } = TAG_RULES[name];
  if (target === 'back') return ok(null);
  if (target === 'state') return stateIn(machine, content);
  const path = plainPath(content.trim());
  const block = own(machine.workflows, path);
  if (block !== undefined) return ok({ name: path, block });
  // Nothing is loaded that the policy does not allow.
  const mayEnter = policy.allowed?.some((each) => each.tag === name && each.target === null) ?? true;
  if (!mayEnter) return err(`${quoted(content.trim())} is not allowed here`);
  const entered = path === '' ? err('it does not name a workflow') : enter(path);
  return entered.ok ? ok({ name: path, block: entered.value }) : entered;
}

function stateIn(machine: Machine, written: string): Result<FoundState, string> {
  const found = findState(machine, written);
  const near = found.ok ? null : nearest(written.trim(), Object.keys(machine.states));
  return found.ok || near === null ? found : err(`${found.error}; did you mean ${near}?`);
}

function checkAllowed({ policy: { allowed }, machine }: ReadContext, move: ResolvedTag): Result<Move, string> {
  const { tag } = move;
  const match = allowed?.find((each) => matchesAllowed(machine, each, move)) ?? null;
  if (allowed === null || match !== null) return ok({ ...move, allowed: match });
  if (!allowed.some((each) => each.tag === tag.name)) return err(`<${tag.name}> is not allowed here`);
  return err(`<${tag.name}> is allowed here, but not as ${writtenTag(tag)}`);
}

function matchesAllowed(machine: Machine, allowed: AllowedTransition, move: ResolvedTag): boolean {
  const { tag, to, returnTo, next, onTimeout } = move;
  const { input, timeout, approver } = tag.attributes;
  const isFree = (fixed: string | null | undefined, written: string | undefined): boolean =>
    (fixed ?? null) === null || written === undefined || written === fixed;
  const blockOf = (name: string): string | undefined => own(machine.states, name);
  const targets = TAG_RULES[tag.name].target === 'workflow' ? machine.workflows : machine.states;
  return (
    allowed.tag === tag.name &&
    (allowed.target === null || own(targets, allowed.target) === to?.block) &&
    (allowed.return === null || blockOf(allowed.return) === returnTo) &&
    (allowed.next === null || blockOf(allowed.next) === next) &&
    (allowed.payload === null || allowed.payload.trim() === tag.content.trim()) &&
    (allowed.timeoutNext === null || onTimeout === null || blockOf(allowed.timeoutNext) === onTimeout) &&
    isFree(allowed.timeout, timeout) &&
    isFree(allowed.approver, approver) &&
    (typeof allowed.input !== 'string' || input === undefined || input === allowed.input)
  );
}

type Variables = Readonly<Record<string, ValueTemplate>>;

/** Attributes of a fork that are not passed to its worker as variables. */
const RESERVED_ATTRIBUTES: ReadonlySet<string> = new Set(['next', 'input', 'cd', 'model', 'effort', 'adapter']);

function variablesOf(context: ReadContext, move: Move): Result<Variables, string> {
  const { lane, machine } = context;
  const { tag } = move;
  const { name, attributes } = tag;
  const fresh = TAG_RULES[name].session === 'fresh';
  const { cd, adapter, input, model, effort } = attributes;
  if (cd !== undefined && !fresh) return err(`<${name}> continues its session, so it cannot change its folder with cd`);
  if (cd?.trim() === '' || cd?.includes('\0') === true) return err(`cd of <${name}> does not name a folder`);
  const other = conflictingAdapter(context, move);
  if (other !== null)
    return err(`<${name}> continues a session of ${String(lane.adapter)}, so it cannot use ${other}; use <reset>`);
  const entersDeeper = TAG_RULES[name].target === 'workflow' && name !== 'reset-workflow';
  const depth = lane.depth + (entersDeeper ? 1 : 0);
  if (depth > WORKFLOW_DEPTH_MAX)
    return err(`<${name}> would nest workflows more than ${String(WORKFLOW_DEPTH_MAX)} deep`);
  // Without a session, the state after the question chooses the adapter.
  const chosen = fresh ? (adapter ?? null) : (lane.adapter ?? own(machine.adapters, move.next ?? '') ?? null);
  const forWorker = isFork(tag.name) ? Object.entries(attributes).filter(([key]) => !RESERVED_ATTRIBUTES.has(key)) : [];
  const planned = move.allowed?.input ?? null;
  return ok({
    ...literals(Object.fromEntries(forWorker)),
    ...laneVariables({ cwd: cd === undefined ? lane.cwd : plainCwd(lane, tag), adapter: chosen, depth }),
    ...(planned === null ? {} : { [LANE_VARIABLES.input]: { kind: 'text', text: planned } }),
    ...literals({
      [LANE_VARIABLES.input]: input,
      [LANE_VARIABLES.model]: model,
      [LANE_VARIABLES.effort]: effort,
    }),
  });
}

/** An adapter that cannot resume the lane's session. */
function conflictingAdapter({ machine, lane }: ReadContext, move: ResolvedTag): string | null {
  const { tag, to, returnTo, next, onTimeout } = move;
  const fresh = TAG_RULES[tag.name].session === 'fresh';
  const continues = fresh ? [returnTo, next] : [to?.block ?? null, returnTo, next, onTimeout];
  const wanted = continues.flatMap((block) => own(machine.adapters, block ?? '') ?? []);
  const named = fresh ? undefined : own(tag.attributes, 'adapter');
  const all = named === undefined ? wanted : [named, ...wanted];
  return lane.adapter === null ? null : (all.find((adapter) => adapter !== lane.adapter) ?? null);
}

/** Only values that differ from the defaults of blocks. */
function laneVariables({ cwd, adapter, depth }: LaneContext): Variables {
  return literals({
    [LANE_VARIABLES.cwd]: cwd === '' ? null : cwd,
    [LANE_VARIABLES.adapter]: adapter,
    [LANE_VARIABLES.depth]: depth === 0 ? null : depth,
  });
}

/** Leaves out absent values. */
function literals(values: Readonly<Record<string, string | number | null | undefined>>): Variables {
  const given = Object.entries(values).flatMap(([name, value]) =>
    value === null || value === undefined ? [] : [[name, literal(value)] as const],
  );
  return Object.fromEntries(given);
}

function plainCwd({ cwd }: LaneContext, { attributes }: ParsedTag): string {
  const path = (own(attributes, 'cd') ?? '').trim();
  return plainPath(path.startsWith('/') || cwd === '' ? path : `${cwd}/${path}`);
}

/** From the worker's state or the folder of its workflow: `main_worker1`. */
function forkName(path: string): string {
  const last = path.slice(path.lastIndexOf('/') + 1).replace(/(?<=.)\.[^.]*$/, '');
  const plain = last.toLowerCase().replaceAll(/[^a-z0-9_-]/g, '');
  return plain.slice(0, 6);
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

function tagFor({ tag, target, return: back, next, payload }: AllowedTransition): ParsedTag {
  const attributes = { ...(back === null ? {} : { return: back }), ...(next === null ? {} : { next }) };
  return { name: tag, attributes, content: target ?? payload ?? '', from: 0, to: 0, error: null };
}
