import { expect, test } from 'vitest';

import { runKernel } from '../../test/kernel-rig/run-kernel.ts';
import { ok, type Result } from '../base/errors.ts';
import { parseMessage } from './protocol.ts';
import { provenKeys, TypedKeys } from './typed-keys.ts';

const NOW = Date.parse('2026-11-19T20:00:00Z');
const KEYS = Buffer.from('ls\r').toString('base64');
const HMAC = '0'.repeat(64);

interface Case {
  readonly state?: ReturnType<typeof runKernel>['state'];
  readonly by?: string;
  readonly time?: string;
  readonly id?: string;
  readonly intoDialog?: boolean;
}

/** Accepts a proof only about the text that `provenKeys` returns for the case. */
function typist({ state = runKernel('a agent w1').state }: Pick<Case, 'state'> = {}) {
  const typed: string[] = [];
  const proven: string[] = [];
  const run = { id: 'r', state };
  const keys = new TypedKeys({
    run,
    clock: { now: () => NOW, at: () => () => undefined },
    proofs: {
      hmacProblem: (text) => (proven.includes(text) ? null : 'its proof is for another decision'),
      signatureProblem: () => Promise.resolve('no signature'),
    },
    typeKeys: (agent, bytes, by): Promise<Result<null, string>> => {
      typed.push(`${agent} ${Buffer.from(bytes).toString()} ${by}`);
      return Promise.resolve(ok(null));
    },
  });
  const send = async ({ time = '2026-11-19T20:00:00Z', id = 'm1', intoDialog = false }: Case, proves = true) => {
    if (proves) proven.push(provenKeys(run, { agent: 'w1', keys: KEYS, by: 'ann', intoDialog, id }, time));
    const proof = { asking: 0, time, hmac: HMAC };
    const facts = { type: 'type_keys', agent: 'w1', keys: KEYS, by: 'ann', id, into_dialog: intoDialog, proof };
    const message = parseMessage(JSON.stringify(facts), 'r');
    if (!message.ok || message.value.kind !== 'type-keys') throw new Error('not a message of keys');
    const answer = await keys.answer(message.value);
    return answer.kind === 'error' ? answer.message : answer.kind;
  };
  return { typed, send };
}

test('keys with the proof of a person are typed, once', async () => {
  const { typed, send } = typist();
  expect(await send({})).toBe('ack');
  expect(await send({})).toContain('typed already');
  expect(await send({ id: 'm2' })).toBe('ack');
  expect(typed).toEqual(['w1 ls\r ann', 'w1 ls\r ann']);
});

test('keys without a proof, with one for others, or with an old one are refused', async () => {
  const { typed, send } = typist();
  expect(await send({}, false)).toContain('for another decision');
  expect(await send({ time: '2026-11-19T19:58:00Z' })).toContain('too old');
  expect(await send({ time: '2026-11-19T20:02:00Z' })).toContain('too old');
  expect(typed).toEqual([]);
});

test('while the agent asks something, only keys are typed that are meant for it', async () => {
  const dialog = {
    kind: 'effect-progressed',
    effect: 'a#1',
    progress: { dialog: { name: 'permission', text: 'rm?' } },
  } as const;
  const { state } = runKernel('a agent w1', dialog);
  const { typed, send } = typist({ state });
  expect(await send({})).toContain('asks something');
  expect(await send({ id: 'm2', intoDialog: true })).toBe('ack');
  expect(typed).toHaveLength(1);
});
