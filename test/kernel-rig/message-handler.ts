// A message handler over a run of the kernel, without an engine: what programs send it and what it answers.

import { ok } from '../../src/base/errors.ts';
import type { Json } from '../../src/base/json.ts';
import { failure } from '../../src/ir/failure.ts';
import { MessageHandler } from '../../src/ipc/message-handler.ts';
import { type Answer, parseMessage } from '../../src/ipc/protocol.ts';
import { fakeRun, type FakeRun, manualClock } from './fake-run.ts';

export function setup(program: readonly string[] = ['a', 'b needs a']) {
  const taken = new Set<string>();
  const unsubmitted = new Set<string>();
  const run = fakeRun(program);
  const clock = manualClock();
  let ids = 0;
  const handler = new MessageHandler({
    run,
    clock,
    promptText: ({ prompt }) => ok(`shown: ${JSON.stringify(prompt)}`),
    hasAccepted: (agent, effect) => taken.has(`${agent} ${effect}`),
    mayReportOn: (agent, effect) => !unsubmitted.has(`${agent} ${effect}`),
    fileProblem: (path) => (path === 'there.txt' ? null : path === 'src' ? 'is a folder' : 'no such file'),
    newId: () => `made-${++ids}`,
    proofs: {
      hmacProblem: (_text, hmac) => (hmac === HMAC ? null : 'its proof is wrong'),
      signatureProblem: async (_text, name) => (name === 'carol' ? null : 'its signature is wrong'),
    },
  });
  run.watch((records, state) => handler.observe(records, state));
  const say = (message: object, gone = new AbortController().signal): Promise<Answer | null> => {
    const parsed = parseMessage(JSON.stringify(message), run.id);
    if (!parsed.ok) throw new Error(parsed.error);
    return handler.answer(parsed.value, gone);
  };
  const emit = (type: string, data: Json = {}, agent: string | null = null): Promise<Answer | null> =>
    say({ type: 'event', event_type: type, data, agent });
  return { run, clock, handler, say, emit, taken, unsubmitted };
}

export const HMAC = '0'.repeat(64);

/** Proofs for an asking of a gate: one by the key of a person, one by a signature. */
export function byKey(asking: number) {
  return { proof: { asking, time: '2026-11-15T15:27:33Z', hmac: HMAC } };
}
export const SIGNED = `-----BEGIN SSH SIGNATURE-----\nU1NI\n-----END SSH SIGNATURE-----\n`;
export function bySignature(asking: number) {
  return { proof: { asking, time: '2026-11-15T15:27:33Z', signature: SIGNED } };
}

/** Whether it is answered without anything happening. */
export async function isOpen(answer: Promise<unknown>): Promise<boolean> {
  const nothing = Symbol('nothing');
  const turns = async (): Promise<symbol> => {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    return nothing;
  };
  return (await Promise.race([answer, turns()])) === nothing;
}

export function fail(run: FakeRun, step: string): Promise<void> {
  return run.submit({
    kind: 'effect-finished',
    effect: `${step}#1`,
    outcome: { kind: 'failure', failure: failure('exit-nonzero', 'no') },
  });
}

export const ACK = { kind: 'ack', success: true };
