// Model scripts for tests with workflows: one answer to each prompt, and no reaction to the results of tools.

import type { Script } from './model-server.ts';
import { type Call, type ModelRequest, type Reply, shellCall } from './model-talk.ts';

export type Answer = (request: ModelRequest) => Reply;

/** By the beginning of the prompt. After a tool result, the model says nothing more. */
export function onPrompts(answers: Readonly<Record<string, Answer>>): Script {
  return (request) => {
    const said = request.conversation.findLast(({ by }) => by === 'user' || by === 'tool');
    if (said?.by === 'tool') return { say: 'fine' };
    const [, answer] = Object.entries(answers).find(([prompt]) => request.last.startsWith(prompt)) ?? [];
    if (answer === undefined) throw new Error(`no answer to: ${request.last}`);
    return answer(request);
  };
}

/** Reports by the command, with outputs in its format: `count=3`. */
export function report(...outputs: readonly string[]): Answer {
  const flags = outputs.map((output) => ` --output '${output}'`);
  return (request) => ({ call: [shellCall(request, `meow done${flags.join('')}`)] });
}

export function say(text: string): Answer {
  return () => ({ say: text });
}

const DONE: Call = { tool: 'mcp__meow__done', input: {} };

/** An action that its agent may not do without asking. */
function forbidden(request: ModelRequest): Call {
  const call = shellCall(request, 'touch made');
  if (request.provider === 'anthropic') return call;
  return { ...call, input: { ...call.input, sandbox_permissions: 'require_escalated', justification: 'May I?' } };
}

/** A model that must ask, and reports when it was approved or told to continue without it, but not before `hold`. */
export function asking(hold?: Promise<void>): Script {
  return (request) => {
    if (request.last.startsWith('Make it.')) return { call: [forbidden(request)] };
    const isReported = request.conversation.some(({ by, text }) => by === 'model' && text.startsWith(DONE.tool));
    return isReported ? { say: 'fine' } : { call: [DONE], ...(hold === undefined ? {} : { hold }) };
  };
}
