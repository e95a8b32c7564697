// What the tags of an answer mean in a machine of states: the follows that they ask for, or why they are refused and what
// whoever answered is told then. Drivers read answers with it; the kernel sees the follows alone.
//
// What goes with a line of control from state to state (its folder, the adapter of its session) is carried in variables
// that no tag and no text can name, since their names begin with `@`. A state that is entered without one has the default
// of its block.

import type { Json } from '../base/json.ts';
import { own } from '../base/json.ts';
import { nearest } from '../base/nearest.ts';
import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';
import { parseDuration } from '../base/time.ts';
import type { Effect } from './effect.ts';
import type { Follow, Target } from './follow.ts';
import { targetOf } from './follow.ts';
import type { Allowed, Machine, Steering } from './machine.ts';
import { findState, implicitOf, plainPath, quoted, WAYS } from './machine.ts';
import type { Refused } from './reminder.ts';
import { refuse } from './reminder.ts';
import type { Tag, TransitionTag } from './tags.ts';
import { readTags } from './tags.ts';
import type { ValueTemplate } from './text.ts';

/** Where a line of control stands, as far as it is carried along. */
export interface Here {
  /** Seen from the folder of the run; empty is that folder. */
  readonly cwd: string;
  /** Of its session; null where it has none yet. */
  readonly adapter: string | null;
  /** How many workflows have been entered from within each other. */
  readonly depth: number;
}

export type Steered =
  | {
      readonly kind: 'follows';
      readonly follows: readonly Follow[];
      /** What is to be shown to whoever watches. */
      readonly printed: readonly string[];
      /** Folders that are to be worked in from here on, seen from that of the run: they are still to be judged. */
      readonly folders: readonly string[];
    }
  | Refused;

/** Names of variables that blocks of states have as parameters. */
export const CARRIED = {
  /** What the state was handed: `{{input}}` and `{{result}}`. */
  input: 'input',
  cwd: '@cwd',
  adapter: '@adapter',
  depth: '@depth',
  /** For the one state that a tag enters. */
  model: '@model',
  effort: '@effort',
  /** Of a question. */
  question: '@question',
  timeout: '@timeout',
  next: '@next',
  timeoutNext: '@timeout_next',
} as const;

/** How many workflows may be entered from within each other. */
export const WORKFLOW_DEPTH_MAX = 8;

/** Where the effect stands that was answered. A script has the session that was handed to it, if any. */
export function hereOf({ variables, session, spec }: Pick<Effect, 'variables' | 'session' | 'spec'>): Here {
  const { [CARRIED.cwd]: cwd, [CARRIED.adapter]: adapter, [CARRIED.depth]: depth } = variables;
  const hasSession = spec.kind === 'turn' || session.kind !== 'fresh';
  return {
    cwd: typeof cwd === 'string' ? cwd : '',
    adapter: hasSession && typeof adapter === 'string' && adapter !== '' ? adapter : null,
    depth: typeof depth === 'number' ? depth : 0,
  };
}

export function steer(steering: Steering, machine: Machine, here: Here, text: string): Steered {
  const { tags, unclosed } = readTags(text);
  const implicit = implicitOf(steering.allowed);
  const said = tags.filter(isTransition);
  const moves = implicit !== null && (steering.forced || said.length === 0) ? [tagOf(implicit)] : said;
  const followed = followAll({ steering, machine, here }, moves, unclosed);
  if (!followed.ok) return refuse(steering, machine, followed.error);
  const printed = tags.filter(({ name }) => name === 'print').map(({ content }) => withoutOuterLineEnds(content));
  return { kind: 'follows', ...followed.value, printed };
}

interface Standing {
  readonly steering: Steering;
  readonly machine: Machine;
  readonly here: Here;
}

interface Transition extends Tag {
  readonly name: TransitionTag;
}

function isTransition(tag: Tag): tag is Transition {
  return tag.name !== 'print';
}

/** A tag whose names are found. */
interface Move {
  readonly tag: Transition;
  /** Where it leads, and what that is called; null where it leads back. */
  readonly to: { readonly name: string; readonly block: string } | null;
  /** Blocks. */
  readonly back: string | null;
  readonly next: string | null;
  readonly late: string | null;
}

type Followed = Pick<Extract<Steered, { kind: 'follows' }>, 'follows' | 'folders'>;

function followAll(at: Standing, tags: readonly Transition[], unclosed: readonly string[]): Result<Followed, string> {
  const said = at.steering.speaker === 'script' ? 'output' : 'answer';
  const [first, ...rest] = tags;
  if (first === undefined) {
    const [open] = unclosed;
    return err(`the ${said} has no transition tag${open === undefined ? '' : `; <${open}> has no </${open}>`}`);
  }
  const faulty = tags.find(({ fault }) => fault !== null);
  if (faulty?.fault !== undefined && faulty.fault !== null) return err(faulty.fault);
  const forks = tags.filter(isFork);
  const others = tags.filter((tag) => !isFork(tag));
  const [way, another] = others;
  const standTogether = forks.length > 0 && another === undefined && (way === undefined || way.name === 'goto');
  if (rest.length > 0 && !standTogether) {
    const names = tags.slice(0, 5).map(({ name }) => name);
    const list = `${names.join(', ')}${tags.length > names.length ? ' …' : ''}`;
    return err(`the ${said} has ${String(tags.length)} transition tags (${list}), and one is needed`);
  }
  const moves: Move[] = [];
  for (const tag of tags) {
    const move = readMove(at.machine, tag, way?.name === 'goto' && isFork(tag) ? way.content : null);
    if (!move.ok) return move;
    moves.push(move.value);
  }
  if (new Set(moves.map(({ tag, to, next }) => (isFork(tag) ? next : to?.block))).size > 1 && forks.length > 0)
    return err(`the forks of the ${said} do not go on at the same state`);
  return followMoves(at, moves);
}

function followMoves(at: Standing, moves: readonly Move[]): Result<Followed, string> {
  const follows: Follow[] = [];
  const folders: string[] = [];
  for (const move of moves) {
    const allowed = permission(at, move);
    if (!allowed.ok) return allowed;
    const variables = variablesOf(at, move, allowed.value);
    if (!variables.ok) return variables;
    if (own(move.tag.attributes, 'cd') !== undefined) folders.push(plainCwd(at.here, move.tag));
    const follow = followOf(at, move, variables.value, allowed.value);
    if (!follow.ok) return follow;
    follows.push(follow.value);
  }
  // Whoever forks goes on as with a goto.
  const next = moves.every(({ tag }) => isFork(tag)) ? (moves[0]?.next ?? null) : null;
  if (next !== null) {
    const target = targetOf(next, carriedOn(at.here));
    follows.push({ kind: 'goto', target, session: 'resume', dropCallers: false });
  }
  return ok({ follows, folders });
}

function isFork({ name }: Transition): boolean {
  return name === 'fork' || name === 'fork-workflow';
}

function followOf(
  { machine, steering, here }: Standing,
  { tag, to, back, next, late }: Move,
  variables: Variables,
  allowed: Allowed | null,
): Result<Follow, string> {
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
      return ok({ kind: 'call', target, returnTo: returnTarget(back ?? '', here), session: callSession(tag.name) });
    case 'fork':
    case 'fork-workflow':
      return ok({ kind: 'fork', target, name: forkName(to?.name ?? '') });
    case 'result': {
      const value = steering.speaker === 'script' ? tag.content : withoutOuterLineEnds(tag.content);
      return ok({ kind: 'return', value: { kind: 'literal', value } });
    }
    case 'ask': {
      const planned = allowed?.timeoutNext ?? null;
      const instead = late ?? (planned === null ? null : (own(machine.states, planned) ?? null));
      return question(machine, tag, { variables, next: next ?? '', late: instead }, allowed);
    }
  }
}

function question(
  { asks }: Machine,
  { attributes, content }: Transition,
  { variables, next, late }: { readonly variables: Variables; readonly next: string; readonly late: string | null },
  allowed: Allowed | null,
): Result<Follow, string> {
  const asked = content.trim();
  if (asked === '') return err('<ask> has no question');
  const timeout = own(attributes, 'timeout') ?? allowed?.timeout ?? null;
  if (timeout === null && late !== null) return err('<ask> has timeout_next and no timeout');
  if (timeout !== null && parseDuration(timeout) === null)
    return err(`${quoted(timeout)} is no duration for <ask> (write 30m, 24h, 7d)`);
  const block = timeout === null ? asks.open : late === null ? asks.timed : asks.routed;
  const asking: Variables = {
    ...variables,
    [CARRIED.question]: literal(asked),
    [CARRIED.next]: literal(next),
    ...(timeout === null ? {} : { [CARRIED.timeout]: literal(timeout) }),
    ...(late === null ? {} : { [CARRIED.timeoutNext]: literal(late) }),
  };
  return ok({ kind: 'goto', target: targetOf(block, asking), session: 'resume', dropCallers: false });
}

/** `beside`: where a goto beside it leads, for a fork that does not say. */
function readMove(machine: Machine, tag: Transition, beside: string | null): Result<Move, string> {
  const { name, attributes, content } = tag;
  const { wants } = WAYS[name];
  const find = (attribute: string, written: string | undefined, needed: boolean): Result<string | null, string> => {
    if (written === undefined)
      return needed ? err(`<${name}> has no ${attribute}="…", which says where to go on`) : ok(null);
    const found = stateIn(machine, written);
    return found.ok ? ok(found.value.block) : err(`${attribute} of <${name}>: ${found.error}`);
  };
  const to = destination(machine, name, content);
  if (!to.ok) return err(`<${name}>: ${to.error}`);
  const back = find('return', own(attributes, 'return'), wants === 'return');
  if (!back.ok) return back;
  const next = find('next', own(attributes, 'next') ?? beside ?? undefined, wants === 'next');
  if (!next.ok) return next;
  const late = find('timeout_next', own(attributes, 'timeout_next'), false);
  if (!late.ok) return late;
  return ok({ tag, to: to.value, back: back.value, next: next.value, late: late.value });
}

function destination(machine: Machine, name: TransitionTag, content: string): Result<Move['to'], string> {
  const { leadsTo } = WAYS[name];
  if (leadsTo === 'back') return ok(null);
  if (leadsTo === 'state') return stateIn(machine, content);
  const path = plainPath(content.trim());
  const block = own(machine.workflows, path);
  if (block !== undefined) return ok({ name: path, block });
  return err(`${quoted(content.trim())} is none of the workflows that this one leads to`);
}

function stateIn(machine: Machine, written: string): ReturnType<typeof findState> {
  const found = findState(machine, written);
  const near = found.ok ? null : nearest(written.trim(), Object.keys(machine.states));
  return found.ok || near === null ? found : err(`${found.error}; did you mean ${near}?`);
}

/** The entry of the policy that it satisfies; null where there is no policy. */
function permission({ steering, machine }: Standing, move: Move): Result<Allowed | null, string> {
  const { allowed } = steering;
  if (allowed === null) return ok(null);
  const fitting = allowed.find((each) => fits(machine, each, move));
  if (fitting !== undefined) return ok(fitting);
  const { tag } = move;
  if (!allowed.some((each) => each.tag === tag.name)) return err(`<${tag.name}> is not allowed here`);
  return err(`<${tag.name}> is allowed here, but not as ${written(tag)}`);
}

function fits(machine: Machine, allowed: Allowed, { tag, to, back, next, late }: Move): boolean {
  const blockOf = (name: string): string | undefined => own(machine.states, name);
  const input = own(tag.attributes, 'input');
  const timeout = own(tag.attributes, 'timeout');
  return (
    allowed.tag === tag.name &&
    (allowed.target === null ||
      (WAYS[tag.name].leadsTo === 'workflow' ? own(machine.workflows, allowed.target) : blockOf(allowed.target)) ===
        to?.block) &&
    (allowed.return === null || blockOf(allowed.return) === back) &&
    (allowed.next === null || blockOf(allowed.next) === next) &&
    (allowed.payload === null || allowed.payload.trim() === tag.content.trim()) &&
    (allowed.timeoutNext === null || late === null || blockOf(allowed.timeoutNext) === late) &&
    (allowed.timeout === null || timeout === undefined || timeout === allowed.timeout) &&
    (typeof allowed.input !== 'string' || input === undefined || input === allowed.input)
  );
}

type Variables = Readonly<Record<string, ValueTemplate>>;

/** Attributes that a fork does not hand to its worker by their names. */
const MEANT_FOR_US: ReadonlySet<string> = new Set(['next', 'input', 'cd', 'model', 'effort', 'adapter']);

/** What the block that is entered is handed. */
function variablesOf(standing: Standing, move: Move, allowed: Allowed | null): Result<Variables, string> {
  const { here, machine } = standing;
  const { tag } = move;
  const { name, attributes } = tag;
  const fresh = WAYS[name].session === 'fresh';
  const { cd, adapter, model, effort } = attributes;
  if (cd !== undefined && !fresh) return err(`<${name}> goes on in its session, and cannot leave its folder with cd`);
  if (cd?.trim() === '' || cd?.includes('\0') === true) return err(`cd of <${name}> names no folder`);
  const other = otherAdapter(standing, move);
  if (other !== null)
    return err(`<${name}> goes on in a session of ${String(here.adapter)}, and ${other} is asked for; use <reset>`);
  const depth = here.depth + (entersDeeper(name) ? 1 : 0);
  if (depth > WORKFLOW_DEPTH_MAX)
    return err(`<${name}> would enter more than ${String(WORKFLOW_DEPTH_MAX)} workflows from within each other`);
  const input = inputOf(tag, allowed);
  // Without a session yet, a question leaves the choice to the state that it leads to.
  const chosen = fresh ? (adapter ?? null) : (here.adapter ?? own(machine.adapters, move.next ?? '') ?? null);
  return ok({
    ...(isFork(tag) ? attributesOf(tag) : {}),
    ...carriedOn({ cwd: cd === undefined ? here.cwd : plainCwd(here, tag), adapter: chosen, depth }),
    ...(input === null ? {} : { [CARRIED.input]: input }),
    ...(model === undefined ? {} : { [CARRIED.model]: literal(model) }),
    ...(effort === undefined ? {} : { [CARRIED.effort]: literal(effort) }),
  });
}

/** An adapter that cannot go on with the session that is to be gone on with. */
function otherAdapter({ machine, here }: Standing, { tag, to, back, next, late }: Move): string | null {
  const fresh = WAYS[tag.name].session === 'fresh';
  const goesOn = fresh ? [back, next] : [to?.block ?? null, back, next, late];
  const wanted = goesOn.flatMap((block) => own(machine.adapters, block ?? '') ?? []);
  const said = fresh ? undefined : own(tag.attributes, 'adapter');
  const all = said === undefined ? wanted : [said, ...wanted];
  return here.adapter === null ? null : (all.find((adapter) => adapter !== here.adapter) ?? null);
}

function attributesOf({ attributes }: Transition): Variables {
  const given = Object.entries(attributes).filter(([key]) => !MEANT_FOR_US.has(key));
  return Object.fromEntries(given.map(([key, value]) => [key, literal(value)]));
}

function inputOf({ attributes }: Transition, allowed: Allowed | null): ValueTemplate | null {
  const said = own(attributes, 'input');
  if (said !== undefined) return literal(said);
  const planned = allowed?.input ?? null;
  return planned === null ? null : { kind: 'text', text: planned };
}

/** Only what differs from the defaults of blocks is written down. */
function carriedOn({ cwd, adapter, depth }: Here): Variables {
  return {
    ...(cwd === '' ? {} : { [CARRIED.cwd]: literal(cwd) }),
    ...(adapter === null ? {} : { [CARRIED.adapter]: literal(adapter) }),
    ...(depth === 0 ? {} : { [CARRIED.depth]: literal(depth) }),
  };
}

/** The caller goes on where it stood: in its folder, with its adapter. */
function returnTarget(block: string, here: Here): Target {
  const result: ValueTemplate = { kind: 'text', text: { parts: [{ path: ['result'], quote: [] }] } };
  return targetOf(block, { ...carriedOn(here), [CARRIED.input]: result });
}

function plainCwd({ cwd }: Here, { attributes }: Transition): string {
  const path = (own(attributes, 'cd') ?? '').trim();
  return plainPath(path.startsWith('/') || cwd === '' ? path : `${cwd}/${path}`);
}

function callSession(name: TransitionTag): 'fork' | 'fresh' {
  return WAYS[name].session === 'fresh' ? 'fresh' : 'fork';
}

function entersDeeper(name: TransitionTag): boolean {
  return WAYS[name].leadsTo === 'workflow' && name !== 'reset-workflow';
}

/** Of the worker's state, or of the folder of its workflow: `main_worker1`. */
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

function written({ name, attributes, content }: Transition): string {
  const pairs = Object.entries(attributes).map(([key, value]) => ` ${key}=${quoted(value)}`);
  const inside = content.trim();
  return `<${name}${pairs.join('')}>${inside.length > 80 ? `${inside.slice(0, 80)}…` : inside}</${name}>`;
}

/** An allowed transition as if it had been said. */
function tagOf({ tag, target, return: back, next, payload }: Allowed): Transition {
  const attributes = { ...(back === null ? {} : { return: back }), ...(next === null ? {} : { next }) };
  return { name: tag, attributes, content: target ?? payload ?? '', from: 0, to: 0, fault: null };
}
