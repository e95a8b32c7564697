// The commands for agents as MCP tools: done, event, ask and status. They make the same requests as the commands, and answer
// the model in words about tools. Entry of a bundle of its own, which `meow mcp` loads: only plain data may cross it.

import { createHash } from 'node:crypto';

import type { Answer } from '../app/agent-requests.ts';
import { currentPrompt, emitEvent, messageOf, reportDone, requestApproval, stepStatus } from '../app/agent-requests.ts';
import type { RunContext } from '../app/run-context.ts';
import { err, ok, type Result, UsageError } from '../base/errors.ts';
import { isJsonMap, type JsonMap, own } from '../base/json.ts';
import { type McpOptions, serveMcp, type Tool } from './server.ts';

const INSTRUCTIONS = `You are an agent in a run of meow, which executes a workflow step by step. Your task is one step. \
When the work is finished, call the tool done with every output that the step asks for; this ends the step, like the \
command meow done. If a person must decide something, call ask and wait for the answer. event reports to the run that \
something happened; status shows your task again.`;

/** Resolves when the input has ended. */
export function serveTools(
  context: RunContext,
  streams: Pick<McpOptions, 'version' | 'input' | 'output'>,
): Promise<void> {
  return serveMcp({ ...streams, instructions: INSTRUCTIONS, tools: toolsFor(context) });
}

function toolsFor(context: RunContext): readonly Tool[] {
  const tools = context.mayAsk ? [...TOOLS, PERMISSION] : TOOLS;
  return tools.map((tool) => ({
    ...tool,
    async perform(input, signal) {
      try {
        return await tool.perform(context, input, signal);
      } catch (error) {
        if (!(error instanceof UsageError)) throw error;
        return err(`meow: ${error.message}${error.hint === null ? '' : `\n  ${error.hint}`}`);
      }
    },
  }));
}

interface RunTool extends Omit<Tool, 'perform'> {
  perform(context: RunContext, input: JsonMap, signal: AbortSignal): Promise<Result<string, string>>;
}

const TOOLS: readonly RunTool[] = [
  {
    name: 'done',
    title: 'Report the step',
    description:
      'Reports that your current step is finished. Call it once you have done everything that the task asks ' +
      'for. If the report is refused, the answer says why: fix that and report again.',
    fields: {
      outputs: {
        type: 'object',
        description: 'One member for each output that the task asks for: its name and a value of its type.',
      },
      notes: { type: 'string', description: 'Kept with the step, for people to read.' },
    },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    perform: done,
  },
  {
    name: 'event',
    title: 'Emit an event',
    description: 'Reports an event to the run, for steps that wait for it. Returns at once.',
    fields: {
      type: { type: 'string', required: true, description: 'The name of the event, like tests-passed.' },
      data: { type: 'object', description: 'Data of the event: names and values.' },
    },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false },
    perform: event,
  },
  {
    name: 'ask',
    title: 'Ask a person',
    description:
      'Asks a person and waits until somebody approves, rejects or answers with a text. This may take hours. If the ' +
      'call is cut off, repeat it: the same question in the same step gets the same answer.',
    fields: {
      question: { type: 'string', required: true, description: 'What the person should decide or tell you.' },
      gate: {
        type: 'string',
        description:
          'Name of the decision, if the task gives you one. A name that was decided in this step stays decided, ' +
          'even for another question.',
      },
      timeout: {
        type: 'string',
        description: 'Longest time to wait, like 30s, 5m or 1h30m. Default: no limit.',
      },
    },
    annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    perform: ask,
  },
  {
    name: 'status',
    title: 'Show the task or a status',
    description: 'Shows your current task again, with the outputs to report, or the status of a step.',
    fields: {
      step: { type: 'string', description: 'Id of a step. Default: show your current task.' },
    },
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    perform: status,
  },
];

/** For programs that ask a tool whether the model may use another one. Models need not call it. */
const PERMISSION: RunTool = {
  name: 'permission',
  title: 'Ask for permission',
  description: 'Asks a person whether a tool may be used. It is called automatically: do not call it.',
  fields: {
    tool_name: { type: 'string', required: true, description: 'The tool.' },
    input: { type: 'object', description: 'Its input.' },
    tool_use_id: { type: 'string', description: 'Id of the call.' },
  },
  annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  perform: permission,
};

async function done(context: RunContext, input: JsonMap, signal: AbortSignal): Promise<Result<string, string>> {
  const report = { outputs: mapIn(input, 'outputs'), notes: textIn(input, 'notes') };
  const answer = await reportDone(context, report, { signal });
  if (answer.kind !== 'ack') return err(`Error: ${forTool(messageOf(answer))}`);
  return ok([COMPLETE, ...(answer.warnings ?? [])].join('\n'));
}

const COMPLETE = 'Complete. There is nothing more to do here until you are given your next task.';

async function event(context: RunContext, input: JsonMap): Promise<Result<string, string>> {
  const type = textIn(input, 'type') ?? '';
  const sent = await emitEvent(context, type, mapIn(input, 'data'));
  if (!sent.ok) return err(`meow: ${sent.error}`);
  if (!sent.value) return err(`meow: the event ${type} was not delivered: the run has ended`);
  return ok(`The event ${type} was sent.`);
}

async function ask(context: RunContext, input: JsonMap, signal: AbortSignal): Promise<Result<string, string>> {
  const prompt = textIn(input, 'question') ?? '';
  const gate = textIn(input, 'gate') ?? gateFor(context, prompt);
  const answer = await requestApproval(context, { gate, prompt, timeout: textIn(input, 'timeout') }, signal);
  if (answer.kind === 'gate-decided') return ok(decisionText(answer));
  if (answer.kind !== 'timeout') return err(`meow: ${messageOf(answer)}`);
  return ok(`No answer: ${answer.message}. ${NO_ANSWER}`);
}

/**
 * The answer is JSON, for the agent's program. The n-th call for the same action in a turn has the same gate in the next
 * turn, so a decision that a person made meanwhile counts for the repeated call, and for no other.
 */
async function permission(context: RunContext, input: JsonMap, signal: AbortSignal): Promise<Result<string, string>> {
  const wanted = mapIn(input, 'input');
  const text = JSON.stringify(wanted);
  const shown = text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
  const tool = textIn(input, 'tool_name') ?? 'a tool';
  const action = gateFor(context, `${tool}: ${text}`).replace('ask-', 'permission-');
  const gate = numbered(action, textIn(input, 'tool_use_id'));
  const answer = await requestApproval(context, { gate, prompt: `${tool}: ${shown}`, timeout: null }, signal);
  if (answer.kind === 'released') return ok(JSON.stringify({ behavior: 'deny', message: RELEASED, interrupt: true }));
  if (answer.kind !== 'gate-decided') return err(`meow: ${messageOf(answer)}`);
  if (answer.approved) return ok(JSON.stringify({ behavior: 'allow', updatedInput: wanted }));
  return ok(JSON.stringify({ behavior: 'deny', message: decisionText(answer) }));
}

const RELEASED = 'Nobody can decide now, because the run is ending. Do not do it, and stop working.';

/** By action, the calls of this turn. A call that is repeated has the same id. */
const calls = new Map<string, (string | null)[]>();

function numbered(action: string, call: string | null): string {
  const earlier = calls.get(action) ?? [];
  const found = call === null ? -1 : earlier.indexOf(call);
  const number = found === -1 ? earlier.push(call) : found + 1;
  calls.set(action, earlier);
  return number === 1 ? action : `${action}-${number}`;
}

const SHOWN_MAX = 2_000;

const NO_ANSWER = 'Ask again if you can wait longer; otherwise continue without an answer, or leave it.';

/** The same question of the same step has the same name, so a repeated call finds its answer; others do not. */
function gateFor({ agent, step }: RunContext, question: string): string {
  const hash = createHash('sha256').update(JSON.stringify([agent, step, question]));
  return `ask-${hash.digest('hex').slice(0, 8)}`;
}

function decisionText({ approved, by, notes, answer }: Extract<Answer, { kind: 'gate-decided' }>): string {
  if (answer !== null) return `${by} answered: ${answer}`;
  const said = notes === null || notes === '' ? '' : ` ${approved ? 'Notes' : 'Reason'}: ${notes}`;
  return approved ? `Approved by ${by}.${said}` : `Rejected by ${by}: do not do it.${said}`;
}

async function status(context: RunContext, input: JsonMap, signal: AbortSignal): Promise<Result<string, string>> {
  const step = textIn(input, 'step');
  if (step !== null) return ok(`The step ${step} is ${await stepStatus(context, step, signal)}.`);
  if (context.agent === null) return err('meow: this agent has no name: MEOW_AGENT is not set');
  const answer = await currentPrompt(context, context.agent, signal);
  if (answer === null) return err('meow: no engine works on the run at the moment; continue with your last task');
  if (answer.kind !== 'prompt') return err(`meow: ${messageOf(answer)}`);
  return ok(answer.content === '' ? IDLE : forTool(answer.content));
}

const IDLE = 'There is no task for you to report at the moment.';

/** Null if it is left out or empty: models send empty values for arguments that they do not need. */
function textIn(input: JsonMap, name: string): string | null {
  const value = own(input, name);
  return typeof value === 'string' && value !== '' ? value : null;
}

function mapIn(input: JsonMap, name: string): JsonMap {
  const value = own(input, name);
  return isJsonMap(value) ? value : {};
}

/** A message of the run may end with the command line to report by; the model has a tool instead. */
export function forTool(text: string): string {
  const at = text.lastIndexOf('\n') + 1;
  const [, outputs] = COMMAND.exec(text.slice(at)) ?? [];
  if (outputs === undefined) return text;
  const members = [...outputs.matchAll(OUTPUT)].map(
    ({ 1: name = '', 2: place = '' }) => `${JSON.stringify(name)}: ${place}`,
  );
  const input = members.length === 0 ? '' : ` with {"outputs": {${members.join(', ')}}}`;
  return `${text.slice(0, at)}  the tool done${input}`;
}

const COMMAND = /^ {2}meow done((?: --output [^\s=]+=<\w+>)*)$/;
const OUTPUT = / --output ([^\s=]+)=(<\w+>)/g;
