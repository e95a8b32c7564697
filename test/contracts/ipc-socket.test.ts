import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { until } from '../rig/rig.ts';
import { IpcRig } from './ipc-rig.ts';

/** The number of requests for a gate. */
function asking(rig: IpcRig): number {
  return rig.run.inputs.filter(({ kind }) => kind === 'gate-asked').length;
}

const ASK = { type: 'await_approval', gate_id: 'g', step: 'a' };
const PING = { type: 'ping' };
const ACK = { type: 'ack', success: true };
const EVENT = { type: 'event', event_type: 'tool', data: { n: 1 } };

test('a message is answered with one line', async () => {
  await using rig = new IpcRig();
  rig.open();
  expect(await rig.ask(PING)).toEqual({ type: 'pong', workflow: 'wf-1' });
  expect(await rig.ask(EVENT)).toEqual(ACK);
  expect(rig.run.state.events.count).toBe(1);
});

test('several messages of one connection are answered in order (socket/1)', async () => {
  await using rig = new IpcRig();
  rig.open();
  using talk = rig.connect();
  talk.say(`${JSON.stringify(EVENT)}\nnonsense\n${JSON.stringify({ type: 'step_status', step: 'a' })}\n{"type":`);
  expect(await talk.next()).toEqual(ACK);
  expect(await talk.next()).toMatchObject({ type: 'error', code: 'malformed' });
  expect(await talk.next()).toEqual({ type: 'step_status', step: 'a', status: 'running' });
  talk.say('"ping"}\n');
  expect(await talk.next()).toMatchObject({ type: 'pong' });
});

test('a client that sends everything and closes its side is answered', async () => {
  await using rig = new IpcRig();
  rig.open();
  using talk = rig.connect();
  talk.say(EVENT);
  talk.socket.end();
  expect(await talk.next()).toEqual(ACK);
  await talk.closed;
});

test('a message for another run, and one of an unknown type, are refused', async () => {
  await using rig = new IpcRig();
  rig.open();
  expect(await rig.ask({ ...EVENT, workflow: 'wf-2' })).toMatchObject({ type: 'error' });
  expect(await rig.ask({ type: 'launch' })).toMatchObject({ message: 'there is no message of type "launch"' });
  expect(rig.run.state.events.count).toBe(0);
});

test('a client that disconnects while it waits consumes no event (socket/5)', async () => {
  await using rig = new IpcRig();
  rig.open();
  const wait = { type: 'await_event', event_type: 'tool', step: 'a' };
  {
    using gone = rig.connect();
    gone.say(`${JSON.stringify(PING)}\n${JSON.stringify(wait)}\n`);
    await gone.next();
    await rig.ask(PING);
  }
  await rig.ask(PING);
  await rig.ask(EVENT);
  expect(await rig.ask(wait)).toMatchObject({ type: 'event_received', data: { n: 1 } });
});

describe('the path of the socket', () => {
  test("is in the run's folder, private, and free again at the end", async () => {
    await using rig = new IpcRig();
    rig.open();
    expect(rig.address.socket).toBe(join(rig.runFolder, 'sock'));
    expect(statSync(rig.address.socket).mode & 0o777).toBe(0o600);
    expect(statSync(rig.address.inbox).mode & 0o777).toBe(0o700);
    await rig.close();
    expect(existsSync(rig.address.socket)).toBe(false);
  });

  test('is in a private folder with an unguessable name, if the path would be too long', async () => {
    await using rig = new IpcRig({ folder: `${'long'.repeat(30)}/run` });
    rig.open();
    expect(rig.address.socket).toBe(join(tmpdir(), `meow-${rig.mark}`, 'sock'));
    expect(statSync(dirname(rig.address.socket)).mode & 0o777).toBe(0o700);
    expect(await rig.ask(PING)).toMatchObject({ type: 'pong' });
    await rig.close();
    expect(existsSync(dirname(rig.address.socket))).toBe(false);
  });

  test('is not in a folder that somebody else created; then the inbox is used (endpoint/4)', async () => {
    await using rig = new IpcRig({ folder: `${'long'.repeat(30)}/run` });
    const folder = dirname(rig.address.socket);
    mkdirSync(folder);
    chmodSync(folder, 0o755);
    rig.open();
    expect(rig.notes).toEqual([expect.stringContaining('reached through its inbox only')]);
    expect(existsSync(rig.address.socket)).toBe(false);
    const { rmdirSync } = await import('node:fs');
    rmdirSync(folder);
  });

  test('is reused after an engine died', async () => {
    await using first = new IpcRig();
    first.open();
    const second = first;
    second.open();
    expect(await second.ask({ type: 'ping' })).toMatchObject({ type: 'pong' });
  });

  test('is not used if something else is there, and the run continues without a socket', async () => {
    await using rig = new IpcRig();
    writeFileSync(rig.address.socket, 'precious');
    rig.open();
    await until(() => rig.notes.length > 0, 'a note');
    expect(rig.notes).toEqual([expect.stringContaining('EADDRINUSE')]);
    await rig.close();
    expect(readdirSync(rig.runFolder)).toContain('sock');
  });
});

describe('a hostile client', () => {
  test('may send any bytes', async () => {
    await using rig = new IpcRig();
    rig.open();
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 5 }), async (chunks) => {
        using talk = rig.connect();
        for (const chunk of chunks) talk.socket.write(chunk);
        talk.say('\n{"type":"ping"}\n');
        for (;;) if ((await talk.next())['type'] === 'pong') return;
      }),
      { numRuns: 200 },
    );
  });

  test('is told once that its line is too long, and disconnected', async () => {
    await using rig = new IpcRig();
    rig.open();
    const before = process.memoryUsage().rss;
    using talk = rig.connect();
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    let sent = 0;
    const flood = async (): Promise<void> => {
      for (; sent < 100 && !talk.socket.destroyed; sent++) {
        await new Promise<void>((resolve) => {
          talk.socket.write(chunk, () => resolve());
          talk.socket.once('close', () => resolve());
        });
      }
    };
    await Promise.all([flood(), talk.closed]);
    expect(sent).toBeLessThan(100);
    expect(process.memoryUsage().rss - before).toBeLessThan(64 * 1024 * 1024);
    expect(await rig.ask(PING)).toMatchObject({ type: 'pong' });
  });

  test('is disconnected if all connections together buffer too much, and the memory is free again (socket/2)', async () => {
    await using rig = new IpcRig();
    rig.open();
    // Each one alone is within its limit: an unfinished line.
    const line = Buffer.alloc(1024 * 1024 - 1, 'x');
    const talks = Array.from({ length: 40 }, () => rig.connect());
    for (const talk of talks) talk.socket.write(line);
    const refused = await Promise.race(talks.map((talk) => talk.next()));
    expect(refused).toMatchObject({ type: 'error', message: 'too many bytes are waiting to be read' });
    for (const talk of talks) talk.socket.destroy();
    await Promise.all(talks.map((talk) => talk.closed));
    // The same amount again, one after the other.
    for (let round = 0; round < 40; round++) {
      using talk = rig.connect();
      talk.socket.write(line);
      talk.say('\n{"type":"ping"}\n');
      expect(await talk.next()).toMatchObject({ type: 'error', code: 'malformed' });
      expect(await talk.next()).toMatchObject({ type: 'pong' });
    }
  });

  test('does no harm with messages during the end of the run (socket/4)', async () => {
    await using rig = new IpcRig();
    rig.open();
    const line = Buffer.alloc(1024 * 1024 - 1, 'x');
    const talks = Array.from({ length: 40 }, () => rig.connect());
    await Promise.all(talks.map((talk) => once(talk.socket, 'connect')));
    const closing = rig.close();
    for (const talk of talks) talk.socket.write(line);
    await closing;
    for (const talk of talks) talk.socket.destroy();
  });

  test('may connect as often as it likes', async () => {
    await using rig = new IpcRig();
    rig.open();
    const before = process.memoryUsage().rss;
    for (let batch = 0; batch < 20; batch++) {
      const talks = Array.from({ length: 500 }, () => rig.connect());
      await new Promise((resolve) => talks.at(-1)?.socket.once('connect', resolve).once('close', resolve));
      for (const talk of talks) if (batch % 2 === 0) talk.socket.destroy();
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(256 * 1024 * 1024);
    // Idle connections make room.
    expect(await rig.ask(PING)).toMatchObject({ type: 'pong' });
  });

  test('that waits with all its connections blocks others from the socket, and this is reported', async () => {
    await using rig = new IpcRig();
    rig.open();
    const talks = Array.from({ length: 256 }, () => rig.connect());
    for (const talk of talks) talk.say(ASK);
    await until(() => asking(rig) === 256, 'all to wait');
    expect(await rig.ask(PING)).toMatchObject({ type: 'error', code: 'busy' });
    for (const talk of talks) talk.socket.destroy();
    // Until the engine notices that they are gone; the test timeout is the limit.
    for (let answer = await rig.ask(PING); answer['type'] !== 'pong'; ) answer = await rig.ask(PING);
  });

  test('that does not read its answers is not read any further', async () => {
    await using rig = new IpcRig();
    rig.open();
    using talk = rig.connect();
    talk.socket.pause();
    const line = `${JSON.stringify({ type: 'x'.repeat(250) })}\n`.repeat(1_000);
    let flushed = 0;
    for (let n = 0; n < 200; n++) talk.socket.write(line, () => (flushed += 1));
    // As long as the engine answers others, and this client makes no progress.
    for (let before = -1; flushed !== before; ) {
      before = flushed;
      for (let n = 0; n < 50; n++) expect(await rig.ask(PING)).toMatchObject({ type: 'pong' });
    }
    expect(flushed).toBeLessThan(200);
  });

  test('does not delay the end of a run (endpoint/3)', async () => {
    await using rig = new IpcRig();
    rig.open();
    const talks = Array.from({ length: 20 }, () => rig.connect());
    for (const talk of talks.slice(5, 10)) talk.say('{"type":');
    for (const talk of talks.slice(0, 5)) talk.say(ASK);
    await until(() => asking(rig) === 5, 'five to wait');
    const began = performance.now();
    await rig.close();
    // Less than the time limit for reading answers.
    expect(performance.now() - began).toBeLessThan(20_000);
    await Promise.all(talks.map(({ closed }) => closed));
  });
});

test('waiting clients are answered before the run is closed', async () => {
  await using rig = new IpcRig();
  rig.open();
  using talk = rig.connect();
  talk.say(ASK);
  await until(() => asking(rig) === 1, 'it to wait');
  await rig.run.submit({ kind: 'stop-requested', by: 'me', force: false });
  const answer = talk.next();
  await rig.close();
  expect(await answer).toEqual({ type: 'released', message: 'the run is ending: it is stopped' });
});
