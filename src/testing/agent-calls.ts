// Calls of `meow` by simulated agents: as messages to the run, and the end of the called program.

import type { Answer, Message } from '../ipc/protocol.ts';
import type { MeowCall, ProgramEnd } from '../sim/turn.ts';

/** The message of a call of `meow` by an agent that works on a step. */
export function messageOfCall(call: MeowCall, agent: string, step: string): Message {
  switch (call.kind) {
    case 'done':
      return { kind: 'step-done', agent, step, outputs: call.outputs, notes: call.notes, message: null };
    case 'event':
      return { kind: 'event', id: null, eventType: call.event, agent, data: call.data };
    case 'prime':
      return { kind: 'get-prompt', agent };
    case 'await-approval': {
      const waiting = { step, attempt: null, agent, timeoutMs: null, deadline: null };
      return { kind: 'await-approval', gate: call.gate, prompt: call.prompt, approvers: null, ...waiting };
    }
  }
}

/** How `meow` ends that an agent has called. */
export function endOfCall(answer: Answer | null, signal: AbortSignal): ProgramEnd {
  const end = (status: number, stdout = '', stderr = ''): ProgramEnd => ({ status, stdout, stderr });
  if (answer === null) return end(signal.aborted ? 143 : 1);
  switch (answer.kind) {
    case 'ack':
      return end(0);
    case 'prompt':
      return end(0, answer.content);
    case 'gate-decided':
      return end(answer.approved ? 0 : 1, answer.answer ?? answer.notes ?? '');
    default:
      return end(1, '', 'message' in answer ? answer.message : answer.kind);
  }
}
