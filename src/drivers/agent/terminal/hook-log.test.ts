// Rules hook/1 to hook/3.

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { HookNames } from '../../../ir/adapter.ts';
import { HookLog } from './hook-log.ts';

const NAMES: HookNames = {
  begun: 'SessionStart',
  accepted: 'Submit',
  toolBegun: 'Pre',
  toolEnded: 'Post',
  blocked: ['Ask'],
  stopped: 'Stop',
  failed: 'Fail',
  ended: 'End',
  sessionKey: 'session_id',
  promptKey: 'prompt',
  messageKey: 'message',
};

let folder: string;
let log: HookLog;
let files = 0;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'meow-hooks-'));
  log = new HookLog(folder, NAMES, () => undefined);
});
afterEach(() => {
  log.close();
  rmSync(folder, { recursive: true });
});

function call(hook: string, payload: unknown = {}, time = ++files): void {
  const name = `${String(time).padStart(10, '0')}.50-0000000042-${hook}.json`;
  writeFileSync(join(folder, name), typeof payload === 'string' ? payload : JSON.stringify(payload));
}

describe('hooks', () => {
  test('tell the session, what was accepted, and rest', () => {
    call('SessionStart', { session_id: 'one' });
    call('Submit', { session_id: 'one', prompt: 'do it' });
    log.refresh();
    expect(log).toMatchObject({ session: 'one', events: 2, isIdle: false });
    expect(log.accepted).toEqual([{ event: 2, prompt: 'do it' }]);
    call('Stop', { session_id: 'two' });
    log.refresh();
    expect(log).toMatchObject({ session: 'two', isIdle: true });
  });

  test('tell whether it does something, which to ask and to be done with a tool is not', () => {
    const acts = ['SessionStart', 'Submit', 'Pre', 'Ask', 'Post', 'Stop', 'Ask', 'Fail'].map((hook) => {
      call(hook);
      log.refresh();
      return log.lastActivity;
    });
    expect(acts).toEqual([0, 2, 3, 3, 3, 6, 6, 8]);
  });

  test('tell of tools that run, and leave nothing of those that have ended', () => {
    call('Pre');
    call('Pre');
    call('Post');
    log.refresh();
    expect(log.toolInFlight).toBe(true);
    call('Post');
    log.refresh();
    expect(log.toolInFlight).toBe(false);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('end the tools of a turn with the turn: one that was interrupted never tells of its end', () => {
    call('Pre');
    call('Stop');
    log.refresh();
    expect(log.toolInFlight).toBe(false);
  });

  test('tell of an error until it goes on', () => {
    call('Fail', { message: 'overloaded' });
    log.refresh();
    expect(log.failure).toMatchObject({ message: 'overloaded' });
    expect(log.isIdle).toBe(true);
    call('Pre');
    log.refresh();
    expect(log.failure).toBeNull();
  });

  test('tell that it waits for a person, until they tell something else', () => {
    call('Ask');
    log.refresh();
    expect(log.blockedSince).not.toBeNull();
    call('Post');
    log.refresh();
    expect(log.blockedSince).toBeNull();
  });

  test('are read in the order of their names by a later engine, whatever other files exist', () => {
    call('Submit', { prompt: 'second', session_id: 'two' }, 9_002);
    call('Submit', { prompt: 'first', session_id: 'one' }, 9_001);
    call('Submit', '{"prompt": "tor', 9_003);
    call('Submit', '[]', 9_004);
    writeFileSync(join(folder, '.0000009005.00-1-Submit.json'), '{"prompt":"on its way"}');
    writeFileSync(join(folder, 'README'), 'hello');
    log.refresh();
    expect(log.accepted.map(({ prompt }) => prompt)).toEqual(['first', 'second']);
    expect(log.session).toBe('two');
  });

  test('are heard as they come', async () => {
    const heard = new Promise<void>((resolve) => {
      log = new HookLog(folder, NAMES, resolve);
    });
    log.open();
    call('Submit', { prompt: 'do it' });
    await heard;
    expect(log.accepted).toHaveLength(1);
  });
});
