import { describe, expect, test } from 'vitest';
import { DEFAULT_TIMING, type DialogPattern, NEVER_ASKS, type TerminalProfile } from '../../../ir/adapter.ts';
import type { PaneCapture } from '../tmux/terminal-pane.ts';
import { type AgentHistory, describeScreen, errorAfter, errorsOn, limitsOn, screenReader } from './screen.ts';

const RULE = '─'.repeat(40);

const PERMISSION: DialogPattern = {
  name: 'permission',
  pattern: 'Do you want to proceed\\?',
  answer: null,
  approve: ['1'],
  reject: ['Escape'],
  cure: null,
  atStart: false,
};

const WAYS: TerminalProfile = {
  command: 'agent',
  resumeCommand: null,
  forkCommand: null,
  permissions: NEVER_ASKS,
  sessionId: 'none',
  startupMs: 0,
  ready: { patterns: ['^─{40}\\n❯', 'shortcuts'], deadlineMs: 1 },
  injection: {
    preKeys: [],
    preDelayMs: 0,
    method: 'paste',
    postDelayMs: 0,
    postKeys: ['Enter'],
    clearKeys: ['C-u'],
    draft: ['^─{40}\\n❯[ \\u00a0]\\S'],
    alters: [],
    misread: [],
    deadlineMs: null,
  },
  acknowledge: { byHook: false, busy: ['esc to interrupt', '^[◐◑] '], queued: ['Press up to edit'], timeoutMs: 1 },
  dialogs: [{ ...PERMISSION, name: 'trust', pattern: 'Do you trust', atStart: true }, PERMISSION],
  liveness: { firstMs: null, idleMs: null },
  stop: { interruptKeys: [], keys: [], waitMs: 0, signal: 'SIGTERM' },
  timing: DEFAULT_TIMING,
};

const BEFORE: AgentHistory = { wasReady: false, idleRow: null };
const LATER: AgentHistory = { wasReady: true, idleRow: '❯' };

function captureOf(text: string, more: Partial<PaneCapture> = {}): PaneCapture {
  const lines = text.split('\n');
  const rows = lines.length;
  const cursor = { row: rows - 1, column: 0 };
  const rest = { inMode: false, title: '', alternate: true, columns: 80, rows, print: '' };
  return { lines, cursor, ...rest, ...more };
}

function read(text: string, more: Partial<PaneCapture> = {}, history = LATER, ways: Partial<TerminalProfile> = {}) {
  return screenReader({ ...WAYS, ...ways })(captureOf(text, more), history);
}

describe('a screen', () => {
  test('shows an empty input by its patterns, or by the row of the cursor when it was ready', () => {
    const box = (input: string): string => `${RULE}\n❯ ${input}\n${RULE}\n? for shortcuts`;
    const menu = 'Go back to:\n❯ 1. hello';
    expect([box(''), box('half'), menu].map((text) => read(text).isEmpty)).toEqual([true, false, false]);
    const bare = { ready: null, injection: { ...WAYS.injection, clearKeys: [], draft: [] } };
    const rowOf = (row: string, history = LATER): boolean =>
      read(row, { cursor: { row: 0, column: row.length } }, history, bare).isEmpty;
    expect(['❯ ', '❯ half', '❯ 1. hello', ''].map((row) => rowOf(row))).toEqual([true, false, false, false]);
    expect([rowOf('', { ...LATER, idleRow: '' }), rowOf('❯', BEFORE)]).toEqual([false, false]);
  });

  test('is ready when all patterns fit, and nothing is asked', () => {
    const box = `${RULE}\n❯\u00a0\n${RULE}\n  ? for shortcuts`;
    expect(read(box)).toMatchObject({ isReady: true, isBusy: false, dialog: null, draft: 'none' });
    expect(read(`${RULE}\n❯`).isReady).toBe(false);
    expect(read(`${box}\nDo you want to proceed?`).isReady).toBe(false);
  });

  test('is always ready where no pattern says when', () => {
    expect(read('anything', {}, LATER, { ready: null }).isReady).toBe(true);
  });

  test('tells of work, also in the title alone', () => {
    expect(read('x · esc to interrupt').isBusy).toBe(true);
    expect(read('x', { title: '◐ working' }).isBusy).toBe(true);
    expect(read('x', { title: '✳ working' }).isBusy).toBe(false);
  });

  test('holds a draft where a pattern says so; a note about queued prompts is none', () => {
    expect(read(`${RULE}\n❯\u00a0text`).draft).toBe('some');
    expect(read(`${RULE}\n❯ Press up to edit queued messages`)).toMatchObject({ draft: 'none', isQueued: true });
  });

  test('perhaps holds one where the row of the cursor is not as it was when the agent was ready', () => {
    const ways = { injection: { ...WAYS.injection, draft: [] } };
    const at = (text: string) => ({ cursor: { row: 0, column: text.length } });
    expect(read('name> ', at('name> '), { wasReady: true, idleRow: 'name>' }, ways).draft).toBe('none');
    expect(read('name> abc', at('name> abc'), { wasReady: true, idleRow: 'name>' }, ways).draft).toBe('perhaps');
    const uncleared = { injection: { ...WAYS.injection, draft: [], clearKeys: [] } };
    expect(read('name> abc', at('name> abc'), { wasReady: true, idleRow: 'name>' }, uncleared).draft).toBe('none');
  });
});

describe('a question', () => {
  test('is told with all that is below the line above it', () => {
    const text = `said before\n${RULE}\n\n Bash command\n\n   rm -r x\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n`;
    expect(read(text).dialog).toMatchObject({
      name: 'permission',
      text: ' Bash command\n\n   rm -r x\n Do you want to proceed?\n ❯ 1. Yes\n   2. No',
    });
  });

  test('includes some lines above it if there is no ruled line', () => {
    const lines = Array.from({ length: 40 }, (_, number) => `line ${number}`);
    const text = read([...lines, 'Do you want to proceed?'].join('\n')).dialog?.text ?? '';
    expect(text.split('\n')).toHaveLength(16);
  });

  test('that only a start shows is none later', () => {
    expect(read('Do you trust this folder?', {}, BEFORE).dialog?.name).toBe('trust');
    expect(read('Do you trust this folder?', {}, LATER).dialog).toBeNull();
  });
});

test('limits are told as they stand there, each of them', () => {
  const patterns = [{ pattern: 'limit resets (\\d+)pm', reset: 'clock' as const }];
  expect(limitsOn('limit resets 3pm\nx\nlimit resets 4pm', patterns)).toEqual(['limit resets 3pm', 'limit resets 4pm']);
});

describe('an error', () => {
  const PATTERNS = ['^■ ([^\\n]+(?:\\n[^\\n]+)*)'];
  const BOX = '\n\n› Ask anything\n\n  model · ~/x';
  const after = (text: string, said = 'Do it.\n  meow done', before: readonly string[] = []) =>
    errorAfter(read(text), PATTERNS, { said, before });

  test('is told in one line, with where it stands', () => {
    expect(errorsOn('a\n■ one\nline\n\n■ two', PATTERNS)).toEqual([
      { message: 'one line', line: 1 },
      { message: 'two', line: 4 },
    ]);
    expect(errorsOn('a\nno luck', ['no luck'])).toEqual([{ message: 'no luck', line: 1 }]);
  });

  test('counts at the end of the screen, and nowhere else', () => {
    expect(after(`› Do it.\n\n■ boom${BOX}`)).toBe('boom');
    expect(after(`› Do it.\n\n■ boom\n\n${'more\n'.repeat(30)}${BOX}`)).toBeNull();
    expect(after(`› Do it.${BOX}`)).toBeNull();
  });

  test('that stands above what was said is none of its', () => {
    expect(after(`■ boom\n\n› Do it.\n    meow done\n${BOX}`)).toBeNull();
    expect(after(`■ boom\n\n› Do it.\n    meow done\n\n■ boom${BOX}`, undefined, ['boom'])).toBe('boom');
    expect(after(`• well\n■ boom${BOX}`, undefined, [])).toBe('boom');
  });

  test('that was there before is none, where what was said is not to be seen', () => {
    expect(after(`■ boom\n\nyou said something${BOX}`, undefined, ['boom'])).toBeNull();
    expect(after(`■ boom\n\nyou said something\n\n■ boom${BOX}`, undefined, ['boom'])).toBe('boom');
    expect(after(`■ boom\n\nyou said something\n\n■ bang${BOX}`, undefined, ['boom'])).toBe('bang');
  });
});

test('what is shown is told for people', () => {
  expect(describeScreen(read('\n one\n\n two\n'))).toBe('its screen ends with:\n one\n two');
  expect(describeScreen(read('\n'))).toBe('its screen is empty');
});
