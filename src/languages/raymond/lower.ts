// Lowers a workflow to its machine and one block per state. Each block has one step, a turn or a command, whose answer
// contains the transition. Values that a lane keeps are parameters of each block, with defaults.

import type { Json } from '../../base/json.ts';
import { LANE_VARIABLES } from '../../ir/answer-transitions.ts';
import { commandSpec } from '../../ir/effect.ts';
import { type AskBlocks, type Machine, TAG_RULES, type TransitionPolicy } from '../../ir/machine.ts';
import { type Block, NO_RETRY, type Parameter, type Program, type Retry, type Step, stepOf } from '../../ir/program.ts';
import { isFork } from '../../ir/tags.ts';
import type { Text } from '../../ir/text.ts';
import { targetOf, type Transition } from '../../ir/transition.ts';
import type { AdapterKnowledge } from '../adapter-catalog.ts';
import { type Exit, exitsOf } from './exits.ts';
import type { LinkedWorkflow } from './link.ts';
import { freeId, type TakenIds } from './names.ts';
import { builtInName, lowerText } from './placeholders.ts';
import { NO_SETTINGS, overriding, type Settings } from './settings.ts';
import { type StateSyntax } from './syntax.ts';

/** `forced` overrides every choice of workflows and tags; `fallback` is used if they name none. */
type AdapterChoice = Pick<AdapterKnowledge, 'forced' | 'fallback'>;

interface Lowered extends Pick<Program, 'steerings'> {
  readonly machine: Machine;
  readonly blocks: readonly Block[];
}

const IDLE_MS = 600_000;
const RETRIES = 2;
/** Only a timeout is retried: invalid answers are corrected, and every other failure is the agent's. */
const RETRY: Retry = { ...NO_RETRY, attemptsMax: 2, kinds: ['timeout', 'idle'] };

export function lowerWorkflow(workflow: LinkedWorkflow, adapters: AdapterChoice, taken: TakenIds): Lowered {
  const ask = freeId(`${workflow.prefix}ask`, taken);
  const asks: AskBlocks = { open: ask, timed: `${ask}:timed`, routed: `${ask}:routed` };
  const states = [...workflow.states.values()];
  const settled = { forced: adapters.forced, fallback: workflow.settings.adapter ?? adapters.fallback };
  const own = states.flatMap(({ id, settings }) =>
    settings.adapter === null ? [] : [[id, settings.adapter] as const],
  );
  const machine: Machine = {
    states: workflow.names.states,
    spellings: workflow.names.spellings,
    workflows: Object.fromEntries(workflow.otherWorkflows),
    adapters: adapters.forced === null ? Object.fromEntries(own) : {},
    keepsCallers: workflow.keepsCallers,
    asks,
    home: workflow.home,
  };
  return {
    machine,
    steerings: Object.fromEntries(states.map((state) => [state.id, steeringOf(workflow, state)])),
    blocks: [...states.map((state) => lowerState(workflow, state, settled)), ...askBlocks(asks, states, settled)],
  };
}

function steeringOf({ machine }: LinkedWorkflow, { body, policy }: StateSyntax): TransitionPolicy {
  return {
    machine,
    speaker: body.kind === 'script' ? 'script' : 'agent',
    allowed: policy?.allowed.map(({ place: _place, ...allowed }) => allowed) ?? null,
    forced: policy?.forced ?? false,
  };
}

function lowerState(workflow: LinkedWorkflow, state: StateSyntax, adapters: AdapterChoice): Block {
  const settings = overriding(state.settings, workflow.settings);
  const { visits } = state;
  const instead = visits === null ? undefined : workflow.states.get(visits.instead)?.id;
  return {
    name: state.id,
    parameters: parametersOf(settings, adapters),
    steps: [lowerStep(workflow, state, settings, adapters)],
    naming: 'visit-first',
    visits: visits === null || instead === undefined ? null : { max: visits.max, instead: targetOf(instead) },
  };
}

function lowerStep(workflow: LinkedWorkflow, state: StateSyntax, settings: Settings, adapters: AdapterChoice): Step {
  const { id, stem, body } = state;
  const { totalMs, idleMs, retries } = settings;
  const shared = {
    id,
    needs: [],
    routes: routesOf(workflow, state),
    unrouted: 'fail',
    onError: { kind: 'fail' },
    retry: RETRY,
    timeout: totalMs === null || totalMs === 0 ? null : `${String(totalMs)}ms`,
    agent: null,
  } as const;
  if (body.kind === 'script') {
    // Scripts may wait silently, unless the workflow says how long.
    const limit = idleMs === null || idleMs === 0 ? {} : { idleMs };
    const more = { env: scriptEnvironment(), steering: id, ...limit };
    const effect = commandSpec<Text>(body.command, hole(LANE_VARIABLES.cwd), more);
    return { ...shared, executor: 'script', act: { kind: 'effect', effect }, repromptsMax: 0 };
  }
  const effect = {
    kind: 'turn',
    adapter: adapters.forced ?? hole(LANE_VARIABLES.adapter),
    prompt: lowerText(body.text, stem),
    cwd: hole(LANE_VARIABLES.cwd),
    model: hole(LANE_VARIABLES.model),
    effort: hole(LANE_VARIABLES.effort),
    idleMs: idleMs === 0 ? null : (idleMs ?? IDLE_MS),
    steering: id,
  } as const;
  return { ...shared, executor: 'prompt', act: { kind: 'effect', effect }, repromptsMax: retries ?? RETRIES };
}

/** Environment of a script, besides the attributes of forks. */
function scriptEnvironment(): Readonly<Record<string, Text>> {
  const agent = hole(builtInName('agent_id'));
  const input = hole(LANE_VARIABLES.input);
  const workflow = hole(builtInName('workflow_id'));
  return {
    MEOW_AGENT: agent,
    RAYMOND_AGENT_ID: agent,
    RAYMOND_WORKFLOW_ID: workflow,
    RAYMOND_TASK_FOLDER: hole(builtInName('task_folder')),
    RAYMOND_INPUT: input,
    RAYMOND_RESULT: input,
  };
}

/** An empty model or effort means the adapter's default; an empty folder means that of the run. */
function parametersOf({ adapter, model, effort }: Settings, { forced, fallback }: AdapterChoice): readonly Parameter[] {
  return [
    parameter(LANE_VARIABLES.input, ''),
    parameter(LANE_VARIABLES.cwd, ''),
    parameter(LANE_VARIABLES.depth, 0),
    parameter(LANE_VARIABLES.adapter, forced ?? adapter ?? fallback),
    parameter(LANE_VARIABLES.model, model ?? ''),
    parameter(LANE_VARIABLES.effort, effort ?? ''),
  ];
}

function parameter(name: string, value: Json): Parameter {
  return { name, type: 'any', required: false, fallback: { kind: 'literal', value }, description: null };
}

/** Likely next states, for views only: answers contain their own transitions. */
function routesOf(workflow: LinkedWorkflow, state: StateSyntax): Step['routes'] {
  const { edges } = exitsOf(workflow, state);
  const transitions = edges.flatMap((edge) => [
    [edge.label, probableTransition(edge)] as const,
    [`next after ${edge.label}`, edge.to === null || edge.next === null ? null : goto(edge.next, 'resume')] as const,
  ]);
  return Object.fromEntries(transitions.flatMap(([label, found]) => (found === null ? [] : [[label, found]])));
}

function probableTransition({ tag, to, back, next }: Exit): Transition | null {
  const onwards = to ?? next;
  if (tag === 'result' || onwards === null) return null;
  if (isFork(tag)) return { kind: 'fork', target: targetOf(onwards), name: '' };
  const { session, requiredAttribute } = TAG_RULES[tag];
  if (requiredAttribute !== 'return') return goto(onwards, session === 'resume' ? 'resume' : 'fresh');
  if (back === null) return null;
  const [target, returnTo] = [targetOf(onwards), targetOf(back)];
  return { kind: 'call', target, returnTo, session: session === 'fork' ? 'fork' : 'fresh' };
}

function goto(block: string, session: 'resume' | 'fresh'): Transition {
  return { kind: 'goto', target: targetOf(block), session, dropCallers: false };
}

/** A gate whose answer is the input of the next state. */
function askBlocks(asks: AskBlocks, states: readonly StateSyntax[], adapters: AdapterChoice): readonly Block[] {
  const id = asks.open;
  const names = Object.fromEntries(states.map((state) => [state.id, state.id]));
  const onwards = (name: string, input: Text): Transition => {
    const { cwd, adapter, depth, input: given } = LANE_VARIABLES;
    const variables = {
      [cwd]: { kind: 'text', text: hole(cwd) },
      [adapter]: { kind: 'text', text: hole(adapter) },
      [depth]: { kind: 'text', text: hole(depth) },
      [given]: { kind: 'text', text: input },
      ask_id: { kind: 'text', text: hole(builtInName('step_id')) },
    } as const;
    return { kind: 'goto', target: { block: hole(name), names, variables }, session: 'resume', dropCallers: false };
  };
  const output = (name: string): Text => ({ parts: [{ path: [id, 'outputs', name], quote: [] }] });
  const answered = {
    approved: onwards(LANE_VARIABLES.next, output('answer')),
    rejected: onwards(LANE_VARIABLES.next, output('reason')),
  };
  const prompt = hole(LANE_VARIABLES.question);
  const moreApprovers = hole(LANE_VARIABLES.approvers);
  const effect = { kind: 'gate', gate: hole('step_id'), prompt, blocks: true, approvers: null, moreApprovers } as const;
  const block = (name: string, timeout: Text | null, routes: Step['routes']): Block => {
    const step = stepOf(id, 'ask', { kind: 'effect', effect }, { routes, unrouted: 'fail', timeout });
    const parameters = [...parametersOf(NO_SETTINGS, adapters), parameter(LANE_VARIABLES.approvers, '')];
    return { name, parameters, steps: [step], naming: 'visit-first', visits: null };
  };
  return [
    block(asks.open, null, answered),
    block(asks.timed, hole(LANE_VARIABLES.timeout), answered),
    block(asks.routed, hole(LANE_VARIABLES.timeout), { ...answered, timeout: onwards(LANE_VARIABLES.timeoutNext, '') }),
  ];
}

function hole(name: string): Text {
  return { parts: [{ path: [name], quote: [] }] };
}
