import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { ok } from '../../base/errors.ts';
import { type Adapter, channelsOf, DEFAULT_TIMING } from '../../ir/adapter.ts';
import { fillString, type Text } from '../../ir/text.ts';
import { namesOf } from '../keys.ts';
import { ADAPTER, CHECK, SECTIONS } from './keys.ts';
import { readAdapter } from './read-adapter.ts';

const ROOT = join(import.meta.dirname, '../../..');
const BUILT_IN = join(ROOT, 'lib/adapters');

const read = (text: string): ReturnType<typeof readAdapter> =>
  readAdapter({ file: 'adapter.toml', text, readers: ['text', 'json'] });

/** One that must be fine, whatever else stands in it. */
const whole = (rest: string): string => `[adapter]\nname = "a"\n${rest}`;
const spawned = (rest: string): string => whole(`[spawn]\ncommand = "agent"\n${rest}`);

function good(text: string): Adapter {
  const { adapter, diagnostics } = read(text);
  expect(diagnostics).toEqual([]);
  return adapter ?? expect.fail();
}

const filled = (text: Text | null | undefined, values: Readonly<Record<string, string>>): string => {
  const result = fillString(text ?? '', ([name = '']) => ok(values[name] ?? ''));
  return result.ok ? result.value : expect.fail(result.error);
};

test('the least that an adapter must say, and what holds where it says nothing', () => {
  expect(good(spawned(''))).toEqual({
    name: 'a',
    description: '',
    isDefault: false,
    alias: null,
    program: null,
    environment: {},
    home: null,
    files: [],
    hooks: null,
    terminal: {
      command: 'agent',
      resumeCommand: null,
      forkCommand: null,
      permissions: { ask: null, edits: null, all: '' },
      sessionId: 'none',
      startupMs: 3_000,
      ready: null,
      injection: {
        preKeys: [],
        preDelayMs: 0,
        method: 'paste',
        postDelayMs: 100,
        postKeys: ['Enter'],
        clearKeys: ['C-u'],
        draft: [],
        alters: [],
        misread: [],
        deadlineMs: null,
      },
      acknowledge: { byHook: false, busy: [], queued: [], timeoutMs: 2_000 },
      dialogs: [],
      liveness: { firstMs: null, idleMs: null, failed: [] },
      stop: { interruptKeys: ['C-c'], keys: [], waitMs: 5_000, signal: 'SIGTERM' },
      timing: DEFAULT_TIMING,
    },
    headless: null,
    acp: null,
    mailbox: false,
    limits: [],
  });
});

test('a file with the keys that were there from the beginning', () => {
  const { terminal, environment } = good(`
[adapter]
name = "claude"
description = "an agent"
[spawn]
command = "claude --dangerously-skip-permissions"
resume_command = "claude --dangerously-skip-permissions --resume {{session_id}}"
startup_delay = "3s"
[environment]
TMUX = ""
[prompt_injection]
pre_keys = ["Escape"]
pre_delay = "100ms"
method = "literal"
post_keys = ["Enter"]
[graceful_stop]
keys = ["C-c"]
wait = "2s"
`);
  expect(environment).toEqual({ TMUX: '' });
  expect(terminal).toMatchObject({
    command: 'claude --dangerously-skip-permissions',
    sessionId: 'none',
    startupMs: 3_000,
    injection: { preKeys: ['Escape'], preDelayMs: 100, method: 'literal', postDelayMs: 300, postKeys: ['Enter'] },
    acknowledge: { byHook: false },
    stop: { keys: ['C-c'], waitMs: 2_000 },
  });
  expect(filled(terminal?.resumeCommand, { session_id: 'x' })).toBe('claude --dangerously-skip-permissions --resume x');
});

test('every key has its place', () => {
  const adapter = good(`
[adapter]
name = "all"
description = "all of it"
default = true

[program]
name = "agent"
version_command = "agent --version"
tried = ["1.2.3"]
install = "npm install -g agent"
login_command = "agent whoami"
login_cure = "agent login"
[[program.checks]]
name = "root"
command = "test $(id -u) != 0"
cure = "be another"

[environment]
TMUX = ""
WHERE = "{{workdir}} {{home}}"
NUMBER = 3

[home]
variable = "AGENT_HOME"
from = ".agent"
link = ["auth.json"]
copy = ["config.toml", "rules/own"]

[[files]]
path = "settings.json"
content = '{"hooks": {"Stop": "{{hook}} Stop"}}'
[[files]]
path = "{{home}}/notes"
format = "toml"
content = 'a = "{{agent}}"'

[hooks]
begun = "Begin"
accepted = "Prompt"
tool_begun = "Tool"
tool_ended = "Tooled"
blocked = "Ask"
stopped = "Stop"
failed = "Fail"
ended = "End"
session_key = "session"
prompt_key = "prompt"
message_key = "message"

[spawn]
command = "agent --id {{session_id}}"
resume_command = "agent --resume {{session_id}}"
fork_command = "agent --fork {{session_id}} --id {{new_session_id}}"
session_id = "chosen"
startup_delay = 1

[ready]
patterns = ['^>']
deadline = "10s"

[prompt_injection]
pre_keys = ["C-a"]
pre_delay = "50ms"
method = "keys"
post_delay = "1s"
post_keys = ["C-m"]
clear_keys = ["C-u", "C-k"]
draft = ['^> \\S']
alters = ["tabs", "composition"]
misread = ['^/']
deadline = "2m"

[acknowledge]
hook = false
busy = ["Working"]
queued = ["Queued"]
timeout = "3s"

[[dialogs]]
name = "trust"
pattern = "Do you trust"
answer = []
approve = ["y", "Enter"]
reject = ["Escape"]
cure = "trust it"
at_start = true

[liveness]
first = "1m"
idle = "10m"
failed = ['^Error: (.+)']

[timing]
settle = "200ms"
pause = "500ms"
typing = "2s"
visible = "3s"
react = "5s"
recover = "2m"

[graceful_stop]
interrupt_keys = ["C-c"]
keys = ["C-d"]
wait = "1s"
signal = "SIGINT"

[headless]
command = "agent -p {{prompt}}"
resume = "agent -p {{prompt}} -r {{session_id}}"
fork = "agent -p {{prompt}} -f {{session_id}}"
model_args = "-m {{model}}"
effort_args = "-e {{effort}}"
prompt = "argument"
reader = "json"
session_id = "told"
signal = "SIGHUP"

[acp]
command = "agent --acp"
permission = "deny"
signal = "SIGINT"

[mailbox]
enabled = true

[[limits]]
pattern = 'try again at (\\d+)'
reset = "epoch"
[[limits]]
pattern = 'no more'
`);
  expect(channelsOf(adapter)).toEqual(['mailbox', 'terminal', 'headless', 'acp']);
  expect(adapter).toMatchObject({
    name: 'all',
    description: 'all of it',
    isDefault: true,
    program: {
      name: 'agent',
      versionCommand: 'agent --version',
      tried: ['1.2.3'],
      install: 'npm install -g agent',
      loginCommand: 'agent whoami',
      loginCure: 'agent login',
      checks: [{ name: 'root', command: 'test $(id -u) != 0', cure: 'be another' }],
    },
    environment: { TMUX: '', NUMBER: '3' },
    home: { variable: 'AGENT_HOME', from: '.agent', link: ['auth.json'], copy: ['config.toml', 'rules/own'] },
    files: [{ path: 'settings.json', format: 'json' }, { format: 'toml' }],
    hooks: {
      begun: 'Begin',
      accepted: 'Prompt',
      toolBegun: 'Tool',
      toolEnded: 'Tooled',
      blocked: ['Ask'],
      stopped: 'Stop',
      failed: 'Fail',
      ended: 'End',
      sessionKey: 'session',
      promptKey: 'prompt',
      messageKey: 'message',
    },
    terminal: {
      sessionId: 'chosen',
      startupMs: 1_000,
      ready: { patterns: ['^>'], deadlineMs: 10_000 },
      injection: {
        preKeys: ['C-a'],
        preDelayMs: 50,
        method: 'keys',
        postDelayMs: 1_000,
        postKeys: ['C-m'],
        clearKeys: ['C-u', 'C-k'],
        draft: [String.raw`^> \S`],
        alters: ['tabs', 'composition'],
        misread: ['^/'],
        deadlineMs: 120_000,
      },
      acknowledge: { byHook: false, busy: ['Working'], queued: ['Queued'], timeoutMs: 3_000 },
      dialogs: [
        {
          name: 'trust',
          pattern: 'Do you trust',
          answer: [],
          approve: ['y', 'Enter'],
          reject: ['Escape'],
          cure: 'trust it',
          atStart: true,
        },
      ],
      liveness: { firstMs: 60_000, idleMs: 600_000, failed: ['^Error: (.+)'] },
      stop: { interruptKeys: ['C-c'], keys: ['C-d'], waitMs: 1_000, signal: 'SIGINT' },
      timing: {
        settleMs: 200,
        pauseMs: 500,
        typingMs: 2_000,
        visibleMs: 3_000,
        reactMs: 5_000,
        recoverMs: 120_000,
      },
    },
    headless: { prompt: 'argument', reader: 'json', sessionId: 'told', signal: 'SIGHUP' },
    acp: { command: 'agent --acp', permission: 'deny', signal: 'SIGINT' },
    mailbox: true,
    limits: [
      { pattern: String.raw`try again at (\d+)`, reset: 'epoch' },
      { pattern: 'no more', reset: null },
    ],
  });
  const { home, workdir } = { home: '/h', workdir: '/w' };
  expect(filled(adapter.environment['WHERE'], { home, workdir })).toBe('/w /h');
  expect(filled(adapter.files[1]?.path, { home })).toBe('/h/notes');
});

describe('a value reaches a command as one word, whatever it is', () => {
  test.each([
    ['agent {{folder}}/a.json', "agent '/x y'/a.json"],
    ['agent "{{folder}}"', 'agent "/x y"'],
    ["agent -c 'a={{folder}}'", "agent -c 'a=/x y'"],
    ['{{folder}} --now', "'/x y' --now"],
  ])('%s', (command, line) => {
    const { terminal } = good(whole(`[spawn]\ncommand = ${JSON.stringify(command)}`));
    expect(filled(terminal?.command, { folder: '/x y' })).toBe(line);
  });
});

describe('who says the id of a session', () => {
  const hooks = '[hooks]\naccepted = "P"\n[[files]]\npath = "h"\ncontent = "{{hook}} P"\n';
  const sessionOf = (text: string): string | undefined => good(whole(text)).terminal?.sessionId;

  test('is told by the command, or by hooks, or nobody does', () => {
    expect(sessionOf('[spawn]\ncommand = "a {{session_id}}"')).toBe('chosen');
    expect(sessionOf(`[spawn]\ncommand = "a"\n${hooks}`)).toBe('told');
    expect(sessionOf('[spawn]\ncommand = "a"')).toBe('none');
  });

  test('headless, by what reads the output', () => {
    expect(good(whole('[headless]\ncommand = "a"')).headless).toMatchObject({ sessionId: 'none', reader: 'text' });
    expect(good(whole('[headless]\ncommand = "a"\nreader = "json"')).headless?.sessionId).toBe('told');
  });
});

test('an agent with a hook for prompts is believed by it', () => {
  const hooked = '[hooks]\naccepted = "P"\n[environment]\nHOOK = "{{hook}} P"\n';
  expect(good(spawned(hooked)).terminal?.acknowledge.byHook).toBe(true);
});

describe('an unknown key is a warning, with the key that may be meant', () => {
  test.each([
    ['[adapter]\nname = "a"\nnmae = "b"\n[spawn]\ncommand = "x"', 3, 'Did you mean "name"?'],
    [spawned('comand = "y"'), 5, 'Did you mean "command"?'],
    [spawned('[redy]\n'), 5, 'Did you mean "ready"?'],
    [spawned('[[dialogs]]\nname = "d"\npattern = "x"\nanswers = []'), 8, 'Did you mean "answer"?'],
  ])('%j', (text, line, hint) => {
    const { adapter, diagnostics } = read(text);
    expect(adapter).not.toBeNull();
    expect(diagnostics).toMatchObject([{ severity: 'warning', code: 'unknown-key', span: { line }, hint }]);
  });
});

describe('what would have no effect is a warning', () => {
  test.each([
    [whole('[headless]\ncommand = "a"\n[liveness]\nidle = "1m"'), '[spawn] is missing'],
    [spawned('[hooks]\naccepted = "P"\n[acknowledge]\nhook = false'), 'nothing calls {{hook}}'],
  ])('%j', (text, message) => {
    const { adapter, diagnostics } = read(text);
    expect(adapter).not.toBeNull();
    expect(diagnostics).toMatchObject([{ severity: 'warning', code: 'unused-section' }]);
    expect(diagnostics[0]?.message).toContain(message);
  });
});

describe('a resume command without the session id is a warning', () => {
  test.each([
    [spawned('resume_command = "a --continue"'), '"resume_command" does not say which session'],
    [whole('[headless]\ncommand = "a"\nresume = "a --continue"'), '"resume" does not say which session'],
  ])('%j', (text, message) => {
    const { adapter, diagnostics } = read(text);
    expect(adapter).not.toBeNull();
    expect(diagnostics).toMatchObject([
      { severity: 'warning', code: 'missing-hole', span: { line: 5 }, hint: expect.stringContaining('{{session_id}}') },
    ]);
    expect(diagnostics[0]?.message).toContain(message);
  });
});

describe('a mistake is an error with its place and a cure, and there is no adapter', () => {
  test.each([
    ['[spawn]\ncommand = "a"', 'missing-key', 1, 'name'],
    ['[adapter]\n[spawn]\ncommand = "a"', 'missing-key', 1, 'my-agent'],
    ['[adapter]\nname = "a.b"\n[spawn]\ncommand = "a"', 'invalid-name', 2, 'letters'],
    ['[adapter]\nname = "../a"\n[spawn]\ncommand = "a"', 'invalid-name', 2, 'folder'],
    ['[adapter]\nname = "a"\ndefault = "yes"\n[spawn]\ncommand = "a"', 'wrong-type', 3, 'true'],
    [whole(''), 'no-channel', 1, '[spawn]'],
    [whole('[mailbox]\nenabled = false'), 'no-channel', 1, '[headless]'],
    [whole('[spawn]'), 'missing-key', 3, 'command'],
    [whole('[spawn]\ncommand = " "'), 'invalid-value', 4, 'remove'],
    [whole('[spawn]\ncommand = "a {{sesion_id}}"'), 'unknown-hole', 4, 'Did you mean "session_id"?'],
    [whole('[spawn]\ncommand = "a {{agent.name}}"'), 'unknown-hole', 4, 'agent'],
    [whole('[spawn]\ncommand = "a {{home}}"'), 'unknown-hole', 4, '[home]'],
    [whole('[spawn]\ncommand = "a {{model}}"'), 'unknown-hole', 4, 'model_args'],
    [whole('[spawn]\ncommand = "a {{"'), 'invalid-reference', 4, '{{name}}'],
    [whole("[spawn]\ncommand = 'a \\{{agent}}'"), 'shell-context', 4, 'quotes'],
    [whole('[spawn]\ncommand = "a {{session_id}}"\nsession_id = "none"'), 'unknown-hole', 4, 'chosen'],
    [whole('[spawn]\ncommand = "a"\nsession_id = "chosen"'), 'missing-hole', 4, '{{session_id}}'],
    [whole('[spawn]\ncommand = "a"\nsession_id = "told"'), 'session-untold', 5, 'none'],
    [whole('[spawn]\ncommand = "a"\nsession_id = "choosen"'), 'invalid-value', 5, 'Did you mean "chosen"?'],
    [
      whole('[spawn]\ncommand = "a {{session_id}}"\nfork_command = "a {{session_id}}"'),
      'missing-hole',
      5,
      'new_session_id',
    ],
    [spawned('startup_delay = "soon"'), 'invalid-duration', 5, '90s'],
    [spawned('[ready]'), 'missing-key', 5, 'patterns'],
    [spawned('[ready]\npatterns = []'), 'missing-key', 6, 'patterns'],
    [spawned('[ready]\npatterns = ["("]'), 'invalid-pattern', 6, 'single quotes'],
    [spawned('[ready]\npatterns = [""]'), 'invalid-pattern', 6, ''],
    [spawned('[ready]\npatterns = [3]'), 'wrong-type', 6, '["one", "two"]'],
    [spawned('[prompt_injection]\nmethod = "typed"'), 'invalid-value', 6, 'paste'],
    [spawned('[prompt_injection]\npost_keys = ["enter"]'), 'invalid-key', 6, 'Did you mean "Enter"?'],
    [spawned('[prompt_injection]\nclear_keys = ["^U"]'), 'invalid-key', 6, 'Did you mean "C-u"?'],
    [spawned('[prompt_injection]\npre_keys = ["yes"]'), 'invalid-key', 6, 'tmux'],
    [spawned('[prompt_injection]\nalters = ["tab"]'), 'invalid-value', 6, 'Did you mean "tabs"?'],
    [spawned('[acknowledge]\nhook = true'), 'no-hook', 6, '[hooks]'],
    [spawned('[acknowledge]\nhook = "Prompt"'), 'wrong-type', 6, 'true'],
    [spawned('[[dialogs]]\npattern = "x"'), 'missing-key', 5, 'name'],
    [spawned('[[dialogs]]\nname = "x"'), 'missing-key', 5, 'pattern'],
    [spawned('[dialogs]\nname = "x"'), 'wrong-type', 5, '[[dialogs]]'],
    [spawned('[liveness]\nidle = true'), 'invalid-duration', 6, '5m'],
    [spawned("[liveness]\nfailed = ['^(Error']"), 'invalid-pattern', 6, 'single quotes'],
    [spawned("[liveness]\nfailed = ['.*']"), 'invalid-pattern', 6, ''],
    [spawned('[liveness]\nfailed = true'), 'wrong-type', 6, '["one", "two"]'],
    [spawned('[graceful_stop]\nsignal = "TERM"'), 'invalid-value', 6, 'SIGTERM'],
    [spawned('[environment]\n"A B" = "x"'), 'invalid-name', 6, 'letters'],
    [spawned('[environment]\nA = ["x"]'), 'wrong-type', 6, 'Environment variables are strings'],
    [spawned('[hooks]\naccepted = "User Prompt"\n[environment]\nA = "{{hook}}"'), 'invalid-name', 6, '{{hook}}'],
    [spawned('[home]\nvariable = "A B"\nfrom = ".a"'), 'invalid-name', 6, 'letters'],
    [spawned('[home]\nvariable = "A"\nfrom = "/etc"'), 'invalid-path', 7, '..'],
    [spawned('[home]\nvariable = "A"\nfrom = ".a"\nlink = ["../b"]'), 'invalid-path', 8, '..'],
    [spawned('[[files]]\npath = "../x"\ncontent = "x"'), 'invalid-path', 6, '{{home}}'],
    [spawned('[[files]]\npath = "x.json"\ncontent = "{"'), 'invalid-content', 7, 'format = "text"'],
    [spawned('[[files]]\npath = "x.json"\ncontent = \'{"a": {{agent}}}\''), 'invalid-content', 7, 'quotes'],
    [spawned('[[files]]\npath = "x.toml"\ncontent = "a = "'), 'invalid-content', 7, ''],
    [spawned('[program]\n'), 'missing-key', 5, 'name'],
    [spawned('[program]\nname = "/usr/bin/x"'), 'invalid-name', 6, 'PATH'],
    [spawned('[[program.checks]]\nname = "x"\ncommand = "y"\n[program]\nname = "p"'), 'missing-key', 5, 'done'],
    [whole('[headless]'), 'missing-key', 3, 'command'],
    [whole('[headless]\ncommand = "a"\nreader = "jsn"'), 'unknown-reader', 5, 'Did you mean "json"?'],
    [whole('[headless]\ncommand = "a"\nprompt = "argument"'), 'missing-hole', 4, '{{prompt}}'],
    [whole('[headless]\ncommand = "a {{prompt}}"'), 'unknown-hole', 4, 'argument'],
    [whole('[headless]\ncommand = "a"\nmodel_args = "{{effort}}"'), 'unknown-hole', 5, 'effort_args'],
    [whole('[headless]\ncommand = "a"\nsession_id = "told"'), 'session-untold', 5, 'none'],
    [whole('[headless]\ncommand = "a"\nsignal = "SIGKILL"'), 'invalid-value', 5, 'SIGTERM'],
    [whole('[acp]'), 'missing-key', 3, 'command'],
    [whole('[acp]\ncommand = "a"\npermission = "always"'), 'invalid-value', 5, 'allow'],
    [spawned('[[limits]]\npattern = "over"\nreset = "clock"'), 'invalid-pattern', 6, 'brackets'],
    [spawned('[[limits]]\npattern = "(over)"\nreset = "later"'), 'invalid-value', 7, 'epoch'],
    ['[adapter', 'syntax', 1, ''],
  ])('%j', (text, code, line, cure) => {
    const { adapter, diagnostics } = read(text);
    expect(adapter).toBeNull();
    const [first, ...more] = diagnostics.filter(({ severity }) => severity === 'error');
    expect([first?.code, first?.span.line, ...more.map((each) => each.code)]).toEqual([code, line]);
    expect(first?.hint).toContain(cure);
  });
});

test('all mistakes are told at once, in the order of the text', () => {
  const { diagnostics } = read(`
[adapter]
name = "a/b"
[spawn]
command = "a {{x}}"
resume_command = "a"
[ready]
patterns = ["("]
deadline = "later"
[prompt_injection]
post_keys = ["Return"]
`);
  expect(diagnostics.map(({ code, span }) => [code, span.line])).toEqual([
    ['invalid-name', 3],
    ['unknown-hole', 5],
    ['missing-hole', 6],
    ['invalid-pattern', 8],
    ['invalid-duration', 9],
    ['invalid-key', 11],
  ]);
});

test('what is wrong with a pattern is said', () => {
  const { diagnostics } = read(spawned("[ready]\npatterns = ['ok', '[z-a]']"));
  expect(diagnostics).toMatchObject([
    {
      message: 'this is not a regular expression: Range out of order in character class',
      span: { line: 6, column: 19 },
    },
  ]);
});

describe('those that come with meow', () => {
  const names = readdirSync(BUILT_IN);
  const files = names.map((name) => ({ name, text: readFileSync(join(BUILT_IN, name, 'adapter.toml'), 'utf8') }));
  const readers = ['claude', 'codex', 'gemini', 'opencode', 'sim', 'text'];
  const adapterOf = (name: string, text: string): ReturnType<typeof readAdapter> =>
    readAdapter({ file: `lib/adapters/${name}/adapter.toml`, text, readers });

  test('are these', () => {
    expect(names.toSorted()).toEqual(['aider', 'claude', 'codex', 'command', 'gemini', 'opencode', 'sim']);
  });

  test.each(files)('$name has no problems, and the name of its folder', ({ name, text }) => {
    const { adapter, diagnostics } = adapterOf(name, text);
    expect(diagnostics).toEqual([]);
    expect(adapter?.name).toBe(name);
  });

  test('one of them is the default, and says so in a line of its own', () => {
    const defaults = files.filter(({ name, text }) => adapterOf(name, text).adapter?.isDefault === true);
    expect(defaults.map(({ name, text }) => [name, /^default = true$/m.test(text)])).toEqual([['claude', true]]);
  });

  test('a text with a part cut out or put in breaks nothing', () => {
    const texts = files.map(({ text }) => text);
    fc.assert(
      fc.property(
        fc.constantFrom(...texts),
        fc.constantFrom(...texts),
        fc.nat(),
        fc.nat(80),
        fc.nat(),
        (a, b, at, size, from) => {
          const start = at % a.length;
          const other = from % b.length;
          const changed = a.slice(0, start) + b.slice(other, other + size) + a.slice(start + size);
          for (const { span, hint, sourceLine } of adapterOf('x', changed).diagnostics) {
            expect(span.line).toBeGreaterThan(0);
            expect(hint).not.toBe('');
            expect(sourceLine.length).toBeLessThan(2_000);
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('in the documents', () => {
  const page = readFileSync(join(ROOT, 'docs/adapters.md'), 'utf8');
  const blocks = [...page.matchAll(/^```adapter\n([\s\S]*?)^```$/gm)].map(({ 1: text = '', index }) => ({
    line: page.slice(0, index).split('\n').length,
    text,
  }));

  test('there are some', () => {
    expect(blocks.length).toBeGreaterThan(2);
  });

  test.each(blocks)('the adapter in line $line has no problems', ({ text }) => {
    expect(read(text).diagnostics).toEqual([]);
  });

  const reference = page.slice(page.indexOf('\n## Reference'), page.indexOf('\n## Placeholders'));
  /** By section, with the sections below them. */
  const rows = new Map(
    reference.split(/^(?:### |\| key of )`\[+(?=[\w.]+\]+`)/m).map((part) => {
      const [, name = ''] = /^([\w.]+)/.exec(part) ?? [];
      return [name, [...part.matchAll(/^\| `([a-z_]+)` \|/gm)].map(({ 1: key = '' }) => key)];
    }),
  );

  test.each([...SECTIONS, CHECK])('the reference has the keys of $name, in that order', ({ name, keys }) => {
    expect(rows.get(name)).toEqual(namesOf(keys));
  });

  test('the reference has every section', () => {
    const sections = [...rows.keys()].filter((name) => name !== '' && !name.includes('.'));
    expect(sections.toSorted()).toEqual(namesOf(ADAPTER.root.keys).toSorted());
  });
});
