import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect, test } from 'vitest';

import { ask as askRun, type EngineAddress, leaveMessage } from '../../src/ipc/client.ts';
import { Inbox } from '../../src/ipc/inbox.ts';
import { isOver } from '../../src/stores/peek.ts';
import { until } from '../rig/rig.ts';
import { IpcRig } from './ipc-rig.ts';

const MEOW = resolve(import.meta.dirname, '../../bin/meow');
const FOR_EVER = { deadline: null, keep: 'never' } as const;
const EVENT = { type: 'event', id: 'once', event_type: 'tool', data: {} };

function ask(
  address: Omit<EngineAddress, 'isOver'>,
  message: Parameters<typeof askRun>[1],
  options: Parameters<typeof askRun>[2] = FOR_EVER,
) {
  return askRun({ ...address, isOver: () => isOver(dirname(address.inbox ?? '')) }, message, options);
}

function put(rig: IpcRig, name: string, text: string): void {
  writeFileSync(join(rig.address.inbox, name), text);
}

function lone(rig: IpcRig): { readonly socket: null; readonly inbox: string } {
  return { socket: null, inbox: rig.address.inbox };
}

/** Resolves when the engine has processed everything in the inbox (endpoint/2). */
async function looked(rig: IpcRig): Promise<void> {
  expect(await rig.ask({ type: 'ping' })).toMatchObject({ type: 'pong' });
}

function asked(rig: IpcRig): number {
  return rig.run.inputs.filter(({ kind }) => kind === 'gate-asked').length;
}

function emitByShell(rig: IpcRig, ...args: readonly string[]): void {
  const env = { PATH: '/nowhere', MEOW_INBOX: rig.address.inbox, MEOW_WORKFLOW: 'wf-1', MEOW_AGENT: 'w' };
  execFileSync('/bin/sh', [MEOW, 'event', ...args], { env });
}

test('a message that a shell script left is processed, without starting any program', async () => {
  await using rig = new IpcRig();
  rig.open();
  emitByShell(rig, 'tool', '--data', 'text=a\nb\'"$(x)`', '--data', 'é=ü');
  await until(() => rig.run.state.events.count === 1, 'the event');
  expect(rig.run.state.events.latest).toMatchObject([
    { type: 'tool', agent: 'w', data: { text: 'a\nb\'"$(x)`', é: 'ü' } },
  ]);
  await until(() => rig.inbox().length === 0, 'the inbox to be empty');
});

test('messages that arrived without an engine are processed in order, each id once (inbox/1, inbox/2)', async () => {
  await using rig = new IpcRig();
  rig.open();
  await rig.close();
  for (let n = 0; n < 300; n++) emitByShell(rig, 'tool', '--data', `n=${n}`);
  leaveMessage(lone(rig), EVENT);
  leaveMessage(lone(rig), EVENT);
  const later = Date.now() / 1_000 + 1;
  for (const name of rig.inbox().filter((one) => one.endsWith('.tell')))
    utimesSync(join(rig.address.inbox, name), later, later);
  rig.open();
  await until(() => rig.inbox().length === 0, 'the inbox to be empty');
  const heard = rig.run.state.events.latest.map(({ data }) => data['n']);
  expect(heard.slice(0, 300)).toEqual(Array.from({ length: 300 }, (_, n) => String(n)));
  expect(rig.run.state.events.count).toBe(301);
});

test('a processed file that was not deleted is not processed again by the next engine (inbox/1)', async () => {
  await using rig = new IpcRig();
  rig.open();
  await rig.close();
  emitByShell(rig, 'tool');
  const [name = ''] = rig.inbox();
  const [path, kept] = [join(rig.address.inbox, name), join(rig.base, 'kept')];
  linkSync(path, kept);
  rig.open();
  await until(() => rig.inbox().length === 0, 'the inbox to be empty');
  await rig.close();
  // As after a crash between the record and the deletion: the same file.
  linkSync(kept, path);
  rig.open();
  await looked(rig);
  expect(rig.inbox()).toEqual([]);
  expect(rig.run.inputs.map(({ kind }) => kind)).toEqual(['event-emitted', 'event-emitted']);
  expect(rig.run.state.events.count).toBe(1);
});

test('a question is answered in the inbox, and both files are removed', async () => {
  await using rig = new IpcRig();
  rig.open();
  const answer = await ask(lone(rig), { type: 'step_status', step: 'a' });
  expect(answer).toEqual({ kind: 'step-status', step: 'a', status: 'running' });
  expect(rig.inbox()).toEqual([]);
});

test('a waiting client is answered when an engine runs again', async () => {
  await using rig = new IpcRig();
  rig.open();
  await rig.close();
  const answer = ask(rig.address, { type: 'await_event', event_type: 'tool', step: 'a' });
  await until(() => rig.inbox().length === 1, 'the question');
  rig.open();
  await looked(rig);
  await rig.ask(EVENT);
  expect(await answer).toMatchObject({ kind: 'event-received', event_type: 'tool' });
});

test('if an engine dies while a client waits, the next engine answers', async () => {
  await using rig = new IpcRig();
  rig.open();
  const answer = ask(rig.address, { type: 'await_approval', gate_id: 'g', step: 'a' });
  await until(() => asked(rig) === 1, 'the question');
  await rig.close();
  await until(() => rig.inbox().length === 1, 'the question to be left in the inbox');
  rig.open();
  await until(() => asked(rig) === 2, 'the question, to the next engine');
  await rig.ask(rig.proven({ type: 'approval', gate_id: 'g', approved: true }));
  expect(await answer).toMatchObject({ kind: 'gate-decided', approved: true });
});

test('a client that waits without an engine times out', async () => {
  await using rig = new IpcRig();
  rig.open();
  await rig.close();
  const gone = await ask(rig.address, { type: 'ping' }, { deadline: Date.now() + 100, keep: 'never' });
  expect(gone).toMatchObject({ kind: 'timeout' });
  expect(rig.inbox()).toEqual([]);
  await ask(rig.address, { type: 'ping' }, { deadline: Date.now() + 100, keep: 'when-late' });
  expect(rig.inbox()).toHaveLength(1);
});

test('a question that its sender withdrew is no longer pending (inbox/4)', async () => {
  await using rig = new IpcRig();
  rig.open();
  put(rig, '.q.ask', `${JSON.stringify({ type: 'await_event', event_type: 'tool', step: 'a' })}\n`);
  renameSync(join(rig.address.inbox, '.q.ask'), join(rig.address.inbox, 'q.ask'));
  await looked(rig);
  unlinkSync(join(rig.address.inbox, 'q.ask'));
  await looked(rig);
  await rig.ask(EVENT);
  await looked(rig);
  expect(rig.run.inputs.map(({ kind }) => kind)).not.toContain('event-received');
  expect(rig.inbox()).toEqual([]);
});

test('an invalid message is moved aside and reported (inbox/5)', async () => {
  await using rig = new IpcRig();
  rig.open();
  put(rig, 'a.tell', 'nonsense');
  put(rig, 'b.event', 'nonsense');
  put(rig, 'c.tell', 'x'.repeat(2 * 1024 * 1024));
  await until(() => rig.notes.length === 3, 'three notes');
  expect(rig.notes.toSorted()).toEqual([
    expect.stringMatching(/a\.tell is not a message: a message is one JSON object/),
    expect.stringMatching(/b\.event is not a message: it is not an event/),
    expect.stringMatching(/c\.tell is not a message: it has more than 1048576 bytes/),
  ]);
  expect(rig.inbox()).toEqual(['refused']);
  expect(readdirSync(join(rig.address.inbox, 'refused')).toSorted()).toEqual(['a.tell', 'b.event', 'c.tell']);
  for (let n = 0; n < 60; n++) put(rig, `x${n}.tell`, 'nonsense');
  await until(() => rig.inbox().length === 1, 'all to be put aside');
  expect(readdirSync(join(rig.address.inbox, 'refused'))).toHaveLength(32);
  expect(rig.notes.length).toBeLessThanOrEqual(32);
});

test('a refused message whose sender does not wait is also moved aside', async () => {
  await using rig = new IpcRig();
  rig.open();
  put(rig, 'a.tell', `${JSON.stringify({ type: 'step_done', step: 'a' })}\n`);
  await until(() => rig.inbox().includes('refused'), 'it to be put aside');
  expect(rig.notes).toEqual(['the message a.tell was refused: step a is not an agent step']);
  expect(readdirSync(join(rig.address.inbox, 'refused'))).toEqual(['a.tell']);
});

test('if nothing can be moved aside, the file stays, and the next engine reads it again', async () => {
  await using rig = new IpcRig();
  rig.open();
  put(rig, 'refused', 'in the place of the folder');
  put(rig, 'a.tell', 'nonsense');
  await until(() => rig.notes.length === 1, 'a note');
  emitByShell(rig, 'tool');
  await until(() => rig.run.state.events.count === 1, 'the event');
  await looked(rig);
  expect(rig.inbox()).toEqual(['a.tell', 'refused']);
  expect(rig.notes).toHaveLength(1);
  await rig.close();
  rmSync(join(rig.address.inbox, 'refused'));
  rig.open();
  await until(() => readdirSync(rig.address.inbox).includes('refused'), 'it to be put aside');
  expect(rig.inbox()).toEqual(['refused']);
});

test('a bug in one pass does not prevent the next', async () => {
  await using rig = new IpcRig();
  const heard: string[] = [];
  const inbox = new Inbox({
    folder: rig.address.inbox,
    runId: 'wf-1',
    answer(message) {
      heard.push(message.kind);
      return message.kind === 'ping'
        ? Promise.reject(new Error('a bug'))
        : Promise.resolve({ kind: 'ack', success: true });
    },
    warn: (line) => rig.notes.push(line),
  });
  put(rig, 'a.tell', '{"type":"ping"}');
  await expect(inbox.sweep()).rejects.toThrow('a bug');
  leaveMessage(lone(rig), EVENT);
  await inbox.sweep();
  expect(heard).toEqual(['ping', 'event']);
  await inbox.close(false);
  expect(rig.inbox()).toEqual(['a.tell']);
});

test('the sender of an invalid question is told so', async () => {
  await using rig = new IpcRig();
  rig.open();
  expect(await ask(lone(rig), { type: 'launch' })).toMatchObject({ kind: 'error', code: 'malformed' });
});

test('a message that was never completed is moved aside after a while', async () => {
  await using rig = new IpcRig();
  rig.open();
  await rig.close();
  put(rig, '17.event', 'meow-event-1\x008\0');
  put(rig, '18.event', 'meow-event-1\x008\0');
  utimesSync(join(rig.address.inbox, '18.event'), 1, 1);
  rig.open();
  await until(() => rig.notes.length === 1, 'a note');
  expect(rig.notes[0]).toContain('18.event is not a message: it is incomplete');
  expect(rig.inbox()).toEqual(['17.event', 'refused']);
});

test('other files, folders, links and pipes are ignored (inbox/3)', async () => {
  await using rig = new IpcRig();
  rig.open();
  const { inbox } = rig.address;
  writeFileSync(join(rig.base, 'secret'), `${JSON.stringify(EVENT)}\n`);
  symlinkSync(join(rig.base, 'secret'), join(inbox, 'link.tell'));
  mkdirSync(join(inbox, 'folder.tell'));
  execFileSync('/bin/sh', ['-c', 'mkfifo "$0"', join(inbox, 'pipe.tell')]);
  put(rig, 'README', 'hello');
  put(rig, 'a b.tell', 'hello');
  emitByShell(rig, 'last');
  await until(() => rig.run.state.events.count === 1, 'the event');
  expect(rig.run.state.events.latest[0]?.type).toBe('last');
  await rig.close();
  expect(rig.inbox()).toEqual(['README', 'a b.tell', 'folder.tell', 'link.tell', 'pipe.tell']);
  expect(rig.notes).toEqual([]);
});

test('an event in the inbox is processed before a later message on the socket (endpoint/2)', async () => {
  await using rig = new IpcRig();
  rig.open();
  for (let n = 0; n < 20; n++) {
    emitByShell(rig, 'tool');
    await rig.ask({ type: 'event', event_type: 'after' });
  }
  const heard = rig.run.state.events.latest.map(({ type }) => type);
  expect(heard).toEqual(Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? 'tool' : 'after')));
});

test('a message that cannot be made durable stays for the next engine (inbox/1)', async () => {
  await using rig = new IpcRig();
  rig.open();
  rig.run.breakDisk();
  emitByShell(rig, 'tool');
  await looked(rig);
  await rig.close();
  expect(rig.inbox()).toHaveLength(1);
});

test('the inbox of an ended run is removed, and waiting clients are told so', async () => {
  await using rig = new IpcRig();
  rig.open();
  Object.assign(rig.run.state, { phase: 'ended', end: 'done' });
  await rig.close();
  expect(existsSync(rig.address.inbox)).toBe(false);
  expect(await ask(rig.address, { type: 'ping' })).toBeNull();
});
