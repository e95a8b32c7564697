// The patterns of the adapters that come with meow, on screens as their agents draw them, cut down to what matters.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

import type { Adapter } from '../../ir/adapter.ts';
import { readAdapter } from './read-adapter.ts';

const BUILT_IN = join(import.meta.dirname, '../../../lib/adapters');

function adapterOf(name: string): Adapter {
  const text = readFileSync(join(BUILT_IN, name, 'adapter.toml'), 'utf8');
  const readers = ['claude', 'codex', 'gemini', 'opencode', 'sim', 'text'];
  return readAdapter({ file: name, text, readers }).adapter ?? expect.fail();
}

interface Seen {
  readonly ready: boolean;
  readonly busy: boolean;
  readonly queued: boolean;
  readonly draft: boolean;
  readonly dialog: string | null;
}

const fits = (text: string) => (pattern: string) => new RegExp(pattern, 'mu').test(text);

/** As a host sees it: blanks at the ends of lines are cut off. */
function look(name: string, screen: string, title = ''): Seen {
  const { terminal } = adapterOf(name);
  const { ready, acknowledge, injection, dialogs } = terminal ?? expect.fail();
  const text = screen
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
  return {
    ready: (ready?.patterns ?? []).every(fits(text)),
    busy: acknowledge.busy.some((pattern) => fits(text)(pattern) || fits(title)(pattern)),
    queued: acknowledge.queued.some(fits(text)),
    draft: injection.draft.some(fits(text)),
    dialog: dialogs.find(({ pattern }) => fits(text)(pattern))?.name ?? null,
  };
}

const nothing: Seen = { ready: false, busy: false, queued: false, draft: false, dialog: null };
const rule = '─'.repeat(60);
const nbsp = '\u00a0';

describe('claude', () => {
  const footer = '  ⏵⏵ bypass permissions on (shift+tab to cycle) · ← for agents';
  const box = (inside: string, below = footer): string => `${rule}\n❯${nbsp}${inside}\n${rule}\n${below}`;

  test.each<[string, string, string, Partial<Seen>]>([
    ['idle', box(''), '✳ a title', { ready: true }],
    ['idle, for the first time', box('Try "fix lint errors"'), '', { ready: true }],
    ['a draft', box('say hello'), '✳ a title', { ready: true, draft: true }],
    ['a long draft', box('[Pasted text #1 +3 lines]', '  paste again to expand'), '', { ready: true, draft: true }],
    ['at work', `✢ Elucidating… (1s · ↓ 3 tokens)\n\n${box('')}`, '', { ready: true, busy: true }],
    ['at work, by its title', box(''), '◐ a title', { ready: true, busy: true }],
    ['at work, by its footer', box('', '  ⏸ manual mode on · esc to interrupt'), '', { ready: true, busy: true }],
    ['a prompt that waits', box('Press up to edit queued messages'), '◑ x', { ready: true, busy: true, queued: true }],
    ['done', `❯ say hello\n\n● Hello.\n\n✻ Cooked for 6s · done 8:19 PM\n\n${box('')}`, '✳ x', { ready: true }],
    ['interrupted', `  ⎿  Interrupted · What should Claude do instead?\n\n${box('')}`, '', { ready: true }],
    [
      'trust',
      ' Quick safety check: Is this a project you created or one you trust?\n\n ❯ 1. No, exit\n   2. Yes',
      '',
      { dialog: 'trust' },
    ],
    [
      'key',
      '  Detected a custom API key in your environment\n\n   1. Yes\n ❯ 2. No (recommended)',
      '',
      { dialog: 'api-key' },
    ],
    [
      'bypass',
      '  WARNING: Claude Code running in Bypass Permissions mode\n\n ❯ 1. No, exit\n   2. Yes, I accept',
      '',
      { dialog: 'bypass' },
    ],
    [
      'settings',
      '  Settings Warning\n\n  hooks: Expected object\n\n ❯ 1. Continue',
      '',
      { dialog: 'settings-warning' },
    ],
    [
      'theme',
      "Welcome to Claude Code v2.1.325\n\n Let's get started.\n\n Choose the text style that looks best with your terminal",
      '',
      { dialog: 'onboarding' },
    ],
    [
      'permission',
      `${rule}\n Bash command\n\n touch made\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. Yes, and always allow access\n   3. No\n\n Esc to cancel · Tab to amend`,
      '✳ x',
      { dialog: 'permission' },
    ],
    [
      'permission to edit',
      ' Do you want to make this edit to a.ts?\n ❯ 1. Yes\n   2. No',
      '',
      { dialog: 'permission' },
    ],
    ['talk of a permission', ` Do you want to proceed?\n ❯ 1. Yes\n\n${box('')}`, '', { ready: true }],
    [
      'a question',
      ' Which one?\n ❯ 1. This\n\n Enter to select · ↑/↓ to navigate · Esc to cancel',
      '',
      { dialog: 'question' },
    ],
    [
      'a limit',
      '   What do you want to do?\n\n ❯ 1. Stop and wait for limit to reset\n   3. Upgrade your plan',
      '',
      { dialog: 'limit' },
    ],
  ])('%s', (_what, screen, title, seen) => {
    expect(look('claude', screen, title)).toEqual({ ...nothing, ...seen });
  });
});

describe('codex', () => {
  const below = '\n\n  fake-model default · ~/project · A session\n';
  const box = (inside: string): string => `› ${inside}${below}`;

  test.each<[string, string, string, Partial<Seen>]>([
    ['idle', `${box('Ask Codex to do anything')}  ? for shortcuts`, 'project', { ready: true }],
    ['a draft', box('say hello'), 'project', { ready: true, draft: true }],
    ['a draft of several lines', box('one\n  two\n  three'), '', { ready: true, draft: true }],
    ['a draft below a message', `› say hello\n\n• Hello.\n\n${box('and again')}`, '', { ready: true, draft: true }],
    ['done', `› say hello\n\n• Hello.\n\n${box('Ask Codex to do anything')}`, '', { ready: true }],
    [
      'at work',
      `• Working (3s • esc to interrupt)\n\n${box('Ask Codex to do anything')}`,
      '',
      { ready: true, busy: true },
    ],
    ['at work, by its title', box('Ask Codex to do anything'), '⠇ project', { ready: true, busy: true }],
    [
      'a prompt that waits',
      `• Messages to be submitted after next tool call (press esc)\n  ↳ second\n\n${box('Ask Codex to do anything')}`,
      '⠇ project',
      { ready: true, busy: true, queued: true },
    ],
    ['login', "  Welcome to Codex, OpenAI's command-line coding agent\n\n> 1. Sign in", '', { dialog: 'login' }],
    [
      'trust',
      '  Folder access\n\n  Trust this folder? Codex can read\n\n› 1. Trust and continue\n  2. Quit',
      '',
      { dialog: 'trust' },
    ],
    [
      'permission',
      '› do it\n\n  Would you like to run the following command?\n\n  $ touch made\n\n› 1. Yes, proceed (y)\n  3. No (esc)\n\n  Press enter to confirm or esc to cancel',
      '[ . ] Action Required | project',
      { dialog: 'permission' },
    ],
    ['rates', '  Approaching rate limits\n\n› 1. Switch\n  2. Keep current model', '', { dialog: 'rate-limits' }],
  ])('%s', (_what, screen, title, seen) => {
    expect(look('codex', screen, title)).toEqual({ ...nothing, ...seen });
  });
});

describe('an error that codex rests over', () => {
  const box = '\n\n\n› Ask Codex to do anything\n\n  fake-model default · ~/project\n  ? for shortcuts';
  const [pattern = expect.fail()] = adapterOf('codex').terminal?.liveness.failed ?? [];

  test.each([
    ['one line', '■ unexpected status 401 Unauthorized: bad key', 'unexpected status 401 Unauthorized: bad key'],
    ['several lines', '■ {"error":{"message":"so bad\nthat it is"}}', '{"error":{"message":"so bad\nthat it is"}}'],
    ['an interruption', '■ Conversation interrupted - use /feedback if something went wrong', null],
    ['what it said after one', '■ high demand\n\n• Well, I went on.', null],
    ['what it did after one', '■ high demand\n\n• Ran ls\n  └ a.ts', null],
    ['talk of one', '• It prints this:\n\n  ■ high demand', null],
  ])('%s', (_what, said, message) => {
    expect(new RegExp(pattern, 'mu').exec(`› do it\n\n${said}${box}`)?.[1] ?? null).toBe(message);
  });
});

describe('gemini', () => {
  const box = ` ${rule}\n YOLO Ctrl+Y\n\n *   Type your message or @path/to/file\n\n workspace (/directory)`;

  test.each<[string, string, string, Partial<Seen>]>([
    ['idle', box, '◇  Ready (w)', { ready: true }],
    ['at work', ` ⠧ Thinking... (esc to cancel, 1s)\n${box}`, '✦  Working… (w)', { ready: true, busy: true }],
    ['a prompt that waits', `  Queued (press ↑ to edit):\n    two\n\n${box}`, '', { ready: true, queued: true }],
    ['trust', ' │ Do you trust the files in this folder?  │\n │ ● 1. Trust folder (w)  │', '', { dialog: 'trust' }],
    [
      'permission',
      '│ touch made │\n│ Allow execution of [Shell]?  │\n│ ● 1. Allow once │',
      '',
      { dialog: 'permission' },
    ],
  ])('%s', (_what, screen, title, seen) => {
    expect(look('gemini', screen, title)).toEqual({ ...nothing, ...seen });
  });
});

describe('opencode', () => {
  const box = (below: string): string => `  ┃\n  ┃  Build · m lab\n  ╹${'▀'.repeat(40)}\n   ${below}  ctrl+p commands`;

  test.each<[string, string, Partial<Seen>]>([
    ['idle', box('/project'), { ready: true }],
    ['at work', box('■■⬝⬝⬝⬝⬝⬝  esc interrupt'), { ready: true, busy: true }],
    ['at work, to be interrupted', box('■⬝⬝⬝⬝⬝⬝⬝  esc again to interrupt'), { ready: true, busy: true }],
    [
      'a prompt that waits',
      `  ┃  two\n  ┃   QUEUED\n  ┃\n\n${box('⬝⬝  esc interrupt')}`,
      { ready: true, busy: true, queued: true },
    ],
    [
      'permission',
      '  ┃  △ Permission required\n  ┃    # Shell command\n  ┃\n  ┃   Allow once   Reject',
      { dialog: 'permission' },
    ],
  ])('%s', (_what, screen, seen) => {
    expect(look('opencode', screen)).toEqual({ ...nothing, ...seen });
  });
});

describe('limits', () => {
  const told = (name: string, text: string): string | null | undefined => {
    const [limit] = adapterOf(name).limits.filter(({ pattern }) => fits(text)(pattern));
    return limit === undefined ? null : new RegExp(limit.pattern, 'mu').exec(text)?.[1];
  };

  test.each([
    ['claude', "You've hit your 5-hour limit · resets 10:25pm (UTC)", '10:25pm (UTC)'],
    ['claude', 'You’ve hit your weekly limit · resets Nov 18, 8pm (Europe/Vienna)', 'Nov 18, 8pm (Europe/Vienna)'],
    ['claude', '5-hour limit reached ∙ resets 3pm', '3pm'],
    ['claude', "You've hit your limit · resets Nov 12 at 4pm (UTC)", 'Nov 12 at 4pm (UTC)'],
    ['claude', "You've hit your limit · resets Mon 3pm", 'Mon 3pm'],
    ['claude', "You've hit your limit · resets when the moon is full", 'when the moon is full'],
    ['claude', "You've hit your Opus limit", undefined],
    ['claude', 'Claude AI usage limit reached', undefined],
    ['claude', 'I wrote a test that prints “You’ve hit your limit”, and it passes.', null],
    ['claude', 'The rate limit reached 40 requests.', null],
    ['claude', 'Claude usage limit reached. Your limit will reset at 3pm (UTC).', '3pm (UTC).'],
    ['claude', 'Claude AI usage limit reached|1794781538', '1794781538'],
    ['claude', 'API Error: 529 Overloaded', null],
    ['codex', '■ You’ve hit your usage limit. Upgrade to Pro (x), or try again at 10:36 PM.', '10:36 PM'],
    [
      'codex',
      '■ You’ve hit your usage limit. Visit y or try again at Nov 18th, 2026 8:36 PM.',
      'Nov 18th, 2026 8:36 PM',
    ],
    ['codex', "You've hit your usage limit. Try again later.", undefined],
    ['codex', 'The message is: "You\'ve hit your usage limit."', null],
    ['codex', '■ exceeded retry limit, last status: 429 Too Many Requests', null],
    ['gemini', 'You have exhausted your capacity. Your quota will reset after 1h2m3s.', '1h2m3s'],
  ])('%s: %s', (name, text, until) => {
    expect(told(name, text)).toBe(until);
  });
});

describe('prompts that an input takes for something else', () => {
  const isMisread = (name: string, prompt: string): boolean =>
    (adapterOf(name).terminal?.injection.misread ?? []).some(fits(prompt));

  test.each([
    ['claude', '!rm x', true],
    ['claude', '  /clear', true],
    ['claude', 'go on \\', true],
    ['claude', 'exit\n', true],
    ['claude', 'Look at it.\n/clear is a command.\nexit', false],
    ['codex', 'look at @src', true],
    ['codex', 'look at @src, please', false],
    ['gemini', 'look at @src, please', true],
    ['gemini', 'mail me@example.org', false],
    ['opencode', '/init', true],
  ])('%s: %s', (name, prompt, misread) => {
    expect(isMisread(name, prompt)).toBe(misread);
  });

  test('codex: more than it takes', () => {
    expect(isMisread('codex', 'x'.repeat(1_000_000))).toBe(true);
    expect(isMisread('codex', 'x\n'.repeat(400_000))).toBe(false);
  });
});
