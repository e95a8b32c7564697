// Messages about gates: questions, decisions and their proofs.

import { expect, test } from 'vitest';

import { ACK, byKey, bySignature, fail, HMAC, isOpen, setup, SIGNED } from '../../test/kernel-rig/message-handler.ts';
import { success } from '../ir/effect.ts';

const WAIT = { type: 'await_approval', step: 'a', gate_id: 'review' };
const APPROVE = { type: 'approval', gate_id: 'review', approved: true, notes: 'fine', by: 'ann', ...byKey(1) };
const REJECT = { type: 'approval', gate_id: 'review', approved: false, reason: 'no tests', by: 'bob', ...byKey(1) };

test('what people are asked is kept with the gate', async () => {
  const { run, say } = setup();
  void say({ ...WAIT, prompt: 'Is it good?' });
  await isOpen(Promise.race([]));
  expect(run.inputs).toEqual([{ kind: 'gate-asked', gate: 'review', step: 'a', prompt: 'Is it good?' }]);
});

test('a decision reaches the one who waits', async () => {
  const { say } = setup();
  const answer = say(WAIT);
  expect(await isOpen(answer)).toBe(true);
  expect(await say(REJECT)).toEqual(ACK);
  expect(await answer).toEqual({
    kind: 'gate-decided',
    gate: 'review',
    approved: false,
    by: 'bob',
    notes: 'no tests',
    answer: null,
  });
});

test('one that nobody has asked for is kept, and said so', async () => {
  const { say } = setup(['a', 'c']);
  void say({ ...WAIT, step: 'c', gate_id: 'other' });
  await isOpen(Promise.race([]));
  expect(await say({ ...APPROVE, ...byKey(0) })).toEqual({
    ...ACK,
    note: 'no step has asked for gate review yet: the decision is stored until one does (open now: other)',
  });
  expect(await say(WAIT)).toMatchObject({ kind: 'gate-decided', approved: true, by: 'ann', notes: 'fine' });
});

test('the first decision stands; the same again does no harm', async () => {
  const { say } = setup();
  void say(WAIT);
  await isOpen(Promise.race([]));
  await say(APPROVE);
  expect(await say({ ...APPROVE, by: 'bob' })).toEqual({
    ...ACK,
    note: 'gate review was already approved by ann',
  });
  expect(await say(REJECT)).toEqual({
    kind: 'error',
    message: 'gate review was already approved by ann, and the first decision counts',
    code: 'refused',
  });
});

test('an approval that is sent again under its id is acknowledged, and decides nothing when the gate is asked again', async () => {
  const { run, say } = setup(['block ask visit-last', 'ask gate deploy route approved=goto:ask']);
  const approve = { ...APPROVE, gate_id: 'deploy', id: 'm1' };
  expect(await say(approve)).toEqual(ACK);
  expect(run.state.steps.get('ask#2')?.status).toBe('running');
  const before = run.inputs.length;
  expect(await say(approve)).toEqual(ACK);
  expect(run.inputs).toHaveLength(before);
  expect(run.state.steps.has('ask#3')).toBe(false);
  expect(await say({ ...approve, id: 'm2', ...byKey(2) })).toEqual(ACK);
  expect(run.state.steps.get('ask#3')?.status).toBe('running');
});

test('two that decide at once: one of them is told that it was second', async () => {
  const { run, say } = setup();
  void say(WAIT);
  await isOpen(Promise.race([]));
  const [approved, rejected] = [say(APPROVE), say(REJECT)];
  expect(await approved).toEqual(ACK);
  expect(await rejected).toMatchObject({ kind: 'error', code: 'refused' });
  expect(run.state.gates.get('review')?.verdict?.approved).toBe(true);
});

test('nobody decides in time', async () => {
  const { run, clock, say } = setup();
  const answer = say({ ...WAIT, timeout_ms: 5_000 });
  await isOpen(answer);
  clock.pass(5_000);
  expect(await answer).toEqual({ kind: 'timeout', message: 'nobody decided gate review within 5.0s' });
  expect(run.inputs.at(-1)).toEqual({ kind: 'gate-expired', gate: 'review', step: 'a' });
});

test('a time that was up before the engine came is up, and its step hears of nothing else first', async () => {
  const { run, clock, say } = setup();
  const answer = say({ ...WAIT, deadline: clock.now() - 1 });
  expect(await answer).toMatchObject({ kind: 'timeout' });
  expect(run.inputs.map(({ kind }) => kind)).toEqual(['gate-asked', 'gate-expired']);
});

test('a question is answered, and only the open one where none is named', async () => {
  const { say } = setup(['a', 'c']);
  expect(await say({ type: 'answer', text: 'blue' })).toMatchObject({ message: 'run wf-1 has no open gate' });
  const colour = say({ ...WAIT, gate_id: 'colour' });
  await isOpen(colour);
  expect(await say({ type: 'answer', text: 'blue', by: 'ann', ...byKey(1) })).toEqual(ACK);
  expect(await colour).toMatchObject({ approved: true, answer: 'blue', by: 'ann' });
  void say({ ...WAIT, gate_id: 'one' });
  void say({ ...WAIT, step: 'c', gate_id: 'two' });
  await isOpen(Promise.race([]));
  expect(await say({ type: 'answer', text: 'blue' })).toMatchObject({ kind: 'error', code: 'refused' });
});

test('a gate needs a step that asks for it', async () => {
  const { say } = setup();
  expect(await say({ type: 'await_approval', gate_id: 'review' })).toMatchObject({ kind: 'error', code: 'refused' });
  expect(await say({ ...WAIT, step: 'nowhere' })).toMatchObject({ kind: 'error', code: 'refused' });
});

test.each([
  ['has no proof', {}],
  ['has a proof that cannot be read', { proof: { asking: 1, time: 'today', hmac: HMAC } }],
  ['has a proof with two kinds', { proof: { ...byKey(1).proof, ...bySignature(1).proof } }],
  ['has a proof of somebody else', { proof: { ...byKey(1).proof, hmac: 'f'.repeat(64) } }],
  ['is signed by somebody else', bySignature(1)],
  ['was made for another asking', byKey(2)],
  ['names an agent that the gate does not list', { agent: 'w' }],
  ['has the name of an agent', { ...byKey(1), by: 'agent:w' }],
])('a decision that %s is refused, and the run warns of it once (handler/5)', async (_what, more) => {
  const { run, say } = setup();
  const answer = say(WAIT);
  expect(await isOpen(answer)).toBe(true);
  const { proof: _, ...approve } = APPROVE;
  const refused = await say({ ...approve, ...more });
  expect(refused).toMatchObject({ kind: 'error', code: 'refused' });
  expect(await say({ ...approve, ...more, notes: 'again' })).toEqual(refused);
  expect(run.state.warnings).toEqual([expect.stringMatching(/^a decision about gate review was refused: /)]);
  expect(await isOpen(answer)).toBe(true);
  expect(await say(REJECT)).toEqual(ACK);
  expect(await answer).toMatchObject({ approved: false });
});

test('a decision that is refused a thousand times for a thousand causes is a hundred warnings', async () => {
  const { run, say } = setup();
  for (let n = 0; n < 1_000; n++) await say({ type: 'approval', gate_id: `g${n}`, approved: true });
  expect(run.state.warnings).toHaveLength(100);
  expect(run.state.gates.size).toBe(0);
});

test('the journal says by which kind of proof a gate was decided', async () => {
  const { run, say } = setup();
  const proofOf = (gate: string) => run.state.gates.get(gate)?.verdict?.proof;
  await say({ ...APPROVE, gate_id: 'one', ...byKey(0) });
  await say({ ...APPROVE, gate_id: 'two', by: 'carol', ...bySignature(0) });
  expect(proofOf('one')).toEqual({ kind: 'key', time: '2026-11-15T15:27:33Z' });
  expect(proofOf('two')).toEqual({ kind: 'signature', time: '2026-11-15T15:27:33Z', signature: SIGNED });
});

test('the first of two decisions counts, also if its proof takes longer to check', async () => {
  const { run, say } = setup();
  void say(WAIT);
  await isOpen(Promise.race([]));
  const [first, second] = [say({ ...REJECT, by: 'carol', ...bySignature(1) }), say(APPROVE)];
  expect(await first).toEqual(ACK);
  expect(await second).toMatchObject({ kind: 'error' });
  expect(run.state.gates.get('review')?.verdict?.by).toBe('carol');
});

test.each([
  ['with another prompt', { prompt: 'Is it sunny?' }],
  ['for other approvers', { approvers: ['agent:w'] }],
])('a question cannot be replaced by one %s for the same step (handler/6)', async (_how, more) => {
  const { say } = setup();
  const calling = new AbortController();
  const question = { ...WAIT, prompt: 'Delete it?', approvers: ['ann'] };
  const answer = say(question, calling.signal);
  await isOpen(answer);
  const message = 'step a waits for gate review already, with another prompt or other approvers';
  expect(await say({ ...question, ...more })).toMatchObject({ kind: 'error', message });
  expect(await isOpen(say(question))).toBe(true);
  expect(await say(APPROVE)).toEqual(ACK);
  expect(await answer).toMatchObject({ approved: true });
  // Afterwards it is another question, and needs another decision.
  const other = say({ ...question, ...more });
  expect(await isOpen(other)).toBe(true);
  expect(await isOpen(say(question))).toBe(false);
});

test('an agent that a gate lists decides it without a proof, while it is at work', async () => {
  const { run, say } = setup(['s spawn w', 'a', 'p prompt w needs s']);
  const answer = say({ ...WAIT, approvers: ['agent:w', 'ann'] });
  await isOpen(answer);
  const approve = { type: 'approval', gate_id: 'review', approved: true, agent: 'w', by: 'ann' };
  expect(await say(approve)).toMatchObject({ message: expect.stringContaining('no agent w of this run is at work') });
  await run.submit({ kind: 'effect-finished', effect: 's#1', outcome: success({}, { session: 'sess-1' }) });
  expect(await say({ ...approve, agent: 'x' })).toMatchObject({ kind: 'error' });
  expect(await say(approve)).toEqual(ACK);
  expect(await answer).toMatchObject({ approved: true, by: 'agent:w' });
  expect(run.state.gates.get('review')?.verdict?.proof).toEqual({ kind: 'agent' });
});

test('nobody decides a gate that nobody waits for any more', async () => {
  const { clock, say } = setup();
  const answer = say({ ...WAIT, timeout_ms: 5_000 });
  await isOpen(answer);
  clock.pass(5_000);
  await answer;
  expect(await say(APPROVE)).toMatchObject({ message: expect.stringContaining('was not decided in time') });
});

test('a run that has failed takes no decision', async () => {
  const { run, say } = setup(['a']);
  await fail(run, 'a');
  expect(await say(APPROVE)).toMatchObject({ kind: 'error', code: 'ended' });
});
