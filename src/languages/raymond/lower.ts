// Lowers a workflow to its machine and one block per state. Each block has one step, a turn or a command, whose answer
// contains the transition. Values that a lane keeps are parameters of each block, with defaults.

import type { Json } from '../../base/json.ts';
import type { Transition, Target } from '../../ir/transition.ts';
import { targetOf } from '../../ir/transition.ts';
import type { AllowedTransition, AskBlocks, Machine, TransitionPolicy } from '../../ir/machine.ts';
import type { Block, Parameter, Step } from '../../ir/program.ts';
import { NO_RETRY } from '../../ir/program.ts';
import { LANE_VARIABLES } from '../../ir/answer-transitions.ts';
import type { Text, ValueTemplate } from '../../ir/text.ts';
import type { Exit } from './exits.ts';
import { exitsOf } from './exits.ts';
import type { LinkedWorkflow } from './link.ts';
import type { TakenIds } from './names.ts';
import { freeId } from './names.ts';
import { lowerText, builtInName } from './placeholders.ts';
import type { Settings } from './settings.ts';
import { NO_SETTINGS, overriding } from './settings.ts';
import type { AllowedSyntax, StateSyntax } from './syntax.ts';

export interface AdapterChoice {
  /** Overrides every choice of workflows and tags; null does not. */
  readonly forced: string | null;
  /** Used if they name none. */
  readonly fallback: string;
}

export interface Lowered {
  readonly machine: Machine;
  readonly steerings: Readonly<Record<string, TransitionPolicy>>;
  readonly blocks: readonly Block[];
}

const IDLE_MS = 600_000;
const RETRIES = 2;

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
  };
  return {
    machine,
    steerings: Object.fromEntries(states.map((state) => [state.id, steeringOf(workflow, state)])),
    blocks: [
      ...states.map((state) => lowerState(workflow, state, settled)),
      ...askBlocks(
        asks,
        states.map(({ id }) => id),
        settled,
      ),
    ],
  };
}

function steeringOf({ machine }: LinkedWorkflow, { body, policy }: StateSyntax): TransitionPolicy {
  return {
    machine,
    speaker: body.kind === 'script' ? 'script' : 'agent',
    allowed: policy === null ? null : policy.allowed.map(withoutPlace),
    forced: policy?.forced ?? false,
  };
}

function withoutPlace({
  tag,
  target,
  return: back,
  next,
  payload,
  input,
  timeout,
  timeoutNext,
}: AllowedSyntax): AllowedTransition {
  return { tag, target, return: back, next, payload, input, timeout, timeoutNext };
}

function lowerState(workflow: LinkedWorkflow, state: StateSyntax, adapters: AdapterChoice): Block {
  const settings = overriding(state.settings, workflow.settings);
  const { id, visits } = state;
  const instead = visits === null ? undefined : workflow.states.get(visits.instead)?.id;
  return {
    name: id,
    parameters: parametersOf(settings, adapters),
    steps: [lowerStep(workflow, state, settings, adapters)],
    naming: 'visit-first',
    visits: visits === null || instead === undefined ? null : { max: visits.max, instead: targetOf(instead) },
  };
}

function lowerStep(workflow: LinkedWorkflow, state: StateSyntax, settings: Settings, adapters: AdapterChoice): Step {
  const { id, stem, body } = state;
  const { timeoutMs, idleMs, retries } = settings;
  const shared = {
    id,
    needs: [],
    routes: routesOf(workflow, state),
    unrouted: 'fail',
    onError: { kind: 'fail' },
    retry: NO_RETRY,
    timeout: timeoutMs === null || timeoutMs === 0 ? null : `${String(timeoutMs)}ms`,
    agent: null,
  } as const;
  if (body.kind === 'script') {
    const effect = {
      kind: 'command',
      script: body.command,
      cwd: hole(LANE_VARIABLES.cwd),
      env: ENVIRONMENT,
      captures: [],
      verdict: 'success',
      errors: [],
      steering: id,
    } as const;
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
const ENVIRONMENT: Readonly<Record<string, Text>> = {
  MEOW_AGENT: hole(builtInName('agent_id')),
  RAYMOND_AGENT_ID: hole(builtInName('agent_id')),
  RAYMOND_WORKFLOW_ID: hole(builtInName('workflow_id')),
  RAYMOND_INPUT: hole(LANE_VARIABLES.input),
  RAYMOND_RESULT: hole(LANE_VARIABLES.input),
};

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
  const follows = edges.flatMap((edge): readonly (readonly [string, Transition])[] => {
    const follow = probableFollow(edge);
    const after =
      edge.to === null || edge.next === null ? null : probableFollow({ ...edge, tag: 'goto', to: edge.next });
    return [
      ...(follow === null ? [] : [[edge.label, follow] as const]),
      ...(after === null ? [] : [[`next after ${edge.label}`, after] as const]),
    ];
  });
  return Object.fromEntries(follows);
}

function probableFollow({ tag, to, back, next }: Exit): Transition | null {
  const onwards = to ?? next;
  if (tag === 'result' || onwards === null) return null;
  const target = targetOf(onwards);
  switch (tag) {
    case 'goto':
    case 'reset':
    case 'reset-workflow':
    case 'ask':
      return {
        kind: 'goto',
        target,
        session: tag === 'goto' || tag === 'ask' ? 'resume' : 'fresh',
        dropCallers: false,
      };
    case 'call':
    case 'call-workflow':
    case 'function':
    case 'function-workflow': {
      const session = tag === 'call' || tag === 'call-workflow' ? 'fork' : 'fresh';
      return back === null ? null : { kind: 'call', target, returnTo: targetOf(back), session };
    }
    case 'fork':
    case 'fork-workflow':
      return { kind: 'fork', target, name: '' };
  }
}

/** A gate whose answer is the input of the next state. */
function askBlocks(asks: AskBlocks, states: readonly string[], adapters: AdapterChoice): readonly Block[] {
  const id = asks.open;
  const names = Object.fromEntries(states.map((state) => [state, state]));
  const onwards = (name: string, input: Text): Transition => {
    const carried = [LANE_VARIABLES.cwd, LANE_VARIABLES.adapter, LANE_VARIABLES.depth].map(
      (each) => [each, whole(each)] as const,
    );
    const variables = {
      ...Object.fromEntries(carried),
      [LANE_VARIABLES.input]: { kind: 'text', text: input } as const,
    };
    const target: Target = { block: hole(name), names, variables };
    return { kind: 'goto', target, session: 'resume', dropCallers: false };
  };
  const output = (name: string): Text => ({ parts: [{ path: [id, 'outputs', name], quote: [] }] });
  const answered = {
    approved: onwards(LANE_VARIABLES.next, output('answer')),
    rejected: onwards(LANE_VARIABLES.next, output('reason')),
  };
  const block = (name: string, timeout: Text | null, routes: Step['routes']): Block => ({
    name,
    parameters: parametersOf(NO_SETTINGS, adapters),
    steps: [
      {
        id,
        executor: 'ask',
        needs: [],
        act: {
          kind: 'effect',
          effect: {
            kind: 'gate',
            gate: hole('step_id'),
            prompt: hole(LANE_VARIABLES.question),
            blocks: true,
            approvers: null,
          },
        },
        routes,
        unrouted: 'fail',
        onError: { kind: 'fail' },
        retry: NO_RETRY,
        repromptsMax: 0,
        timeout,
        agent: null,
      },
    ],
    naming: 'visit-first',
    visits: null,
  });
  return [
    block(asks.open, null, answered),
    block(asks.timed, hole(LANE_VARIABLES.timeout), answered),
    block(asks.routed, hole(LANE_VARIABLES.timeout), { ...answered, timeout: onwards(LANE_VARIABLES.timeoutNext, '') }),
  ];
}

function hole(name: string): Text {
  return { parts: [{ path: [name], quote: [] }] };
}

function whole(name: string): ValueTemplate {
  return { kind: 'text', text: hole(name) };
}
