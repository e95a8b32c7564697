import { describe, expect, test } from 'vitest';
import { NO_RESTRICTIONS } from '../ir/policy.ts';
import { DEFAULT_CONFIG, readConfig } from './config.ts';

const read = (text: string): ReturnType<typeof readConfig> => readConfig({ file: '.meow/config.toml', text });

test('an empty file changes nothing', () => {
  expect(read('')).toEqual({ config: DEFAULT_CONFIG, diagnostics: [] });
});

test('every key has its place', () => {
  const { config, diagnostics } = read(`
shell = "bash"
tmux = "shared"
[limits]
max_expansion_depth = 50
max_total_steps = 1000
max_workflow_file_size = "10MB"
[agents]
default_adapter = "codex"
channel = "headless"
permissions = "edits"
[gates]
remind = "notify-send"
remind_every = "1h"
allowed_signers = "~/signers"
[budget]
run_usd = 5
day_usd = 20.5
day_tokens = 1000
agent_usd = 2
reserve_usd = 0.25
overrun = 0.2
[prices]
"claude/opus" = { input = 5, cached = 0.5, output = 25 }
"codex/*" = { input = 1, output = 10 }
[accounts]
spread = "30s"
[quiet]
hours = "22:30-06:00"
timezone = "Europe/Berlin"
[notify]
on = ["gate", "done"]
command = "say"
webhook = { url = "https://example.com/hook", format = "ntfy", secret = "$S" }
desktop = true
bell = true
after = "30s"
repeat = "4h"
[serve]
resume = false
[telemetry]
otlp = "http://127.0.0.1:4318"
[secrets]
env = ["DEPLOY_*"]
[conductor]
allowed_entrypoints = ["scripts/*"]
env_allow = ["CI"]
allow_lockfiles = true
protected_branches = ["trunk"]
[policy.docs]
text = "Write documents."
allowed_paths = ["./docs/", "*.md"]
forbidden_paths = ["docs/secret/"]
forbidden_operations = ["delete", "commit"]
network = "deny"
execution = "read_only"
on_prompt = "fail"
lockfiles = "deny"
[validators.tests]
command = "npm test"
cwd = "app"
timeout = 90
artifacts = ["junit.xml"]
`);
  expect(diagnostics).toEqual([]);
  expect(config).toEqual({
    shell: 'bash',
    permissions: 'edits',
    tmux: 'shared',
    defaultAdapter: 'codex',
    channel: 'headless',
    limits: { ...DEFAULT_CONFIG.limits, expansionDepthMax: 50, stepsMax: 1000, stateFileBytesMax: 10_000_000 },
    gates: { remind: 'notify-send', remindEveryMs: 3_600_000, allowedSigners: '~/signers' },
    money: {
      budgets: [
        {
          scope: 'project',
          runUsd: 5,
          dayUsd: 20.5,
          dayTokens: 1000,
          agentUsd: 2,
          reserveUsd: 0.25,
          overrun: 0.2,
        },
      ],
      prices: {
        'claude/opus': { input: 5, cached: 0.5, output: 25 },
        // Cached input costs what other input costs, unless it says so.
        'codex/*': { input: 1, cached: 1, output: 10 },
      },
      spreadMs: 30_000,
      quiet: { from: 22 * 60 + 30, to: 360, timezone: 'Europe/Berlin' },
    },
    notify: {
      on: ['gate', 'done'],
      command: 'say',
      webhook: { url: 'https://example.com/hook', format: 'ntfy', secret: '$S' },
      desktop: true,
      bell: true,
      afterMs: 30_000,
      repeatMs: 14_400_000,
    },
    serve: { resume: false },
    retention: null,
    telemetry: { otlp: 'http://127.0.0.1:4318' },
    secretNames: ['DEPLOY_*'],
    conductor: {
      allowedEntrypoints: ['scripts/*'],
      envAllow: ['CI'],
      allowLockfiles: true,
      protectedBranches: ['trunk'],
      policies: {
        docs: {
          name: 'docs',
          text: 'Write documents.',
          // A folder is meant with a slash at its end or without.
          allowedPaths: ['docs', '*.md'],
          forbiddenPaths: ['docs/secret'],
          forbiddenOperations: ['delete', 'commit'],
          network: 'deny',
          access: 'read_only',
          onPrompt: 'fail',
          lockfiles: 'deny',
        },
      },
      validators: { tests: { command: 'npm test', cwd: 'app', timeoutMs: 90_000, artifacts: ['junit.xml'] } },
    },
  });
});

test('a receiver of traces is an address that may be called', () => {
  for (const otlp of ['collector:4317', 'ftp://x', 'http://169.254.169.254']) {
    const { config, diagnostics } = read(`[telemetry]\notlp = "${otlp}"\n`);
    expect(config).toBeNull();
    expect(diagnostics.map(({ code }) => code)).toEqual(['invalid-url']);
  }
});

test('protected are the branches that most projects have, until a configuration says otherwise', () => {
  expect(DEFAULT_CONFIG.conductor.protectedBranches).toEqual(['main', 'master', 'release/*']);
  expect(read('[conductor]\nprotected_branches = []').config?.conductor.protectedBranches).toEqual([]);
});

test('a policy that says nothing allows everything', () => {
  const { policies } = read('[policy.none]').config?.conductor ?? DEFAULT_CONFIG.conductor;
  expect(policies['none']).toEqual({ ...NO_RESTRICTIONS, name: 'none' });
});

test('policies and validators of two files stand side by side, and of one name the later', () => {
  const person = '[validators.tests]\ncommand = "a"\n[validators.lint]\ncommand = "b"';
  const base = read(person).config ?? DEFAULT_CONFIG;
  const { config } = readConfig({ file: 'c.toml', text: '[validators.tests]\ncommand = "c"', base });
  const commands = Object.entries(config?.conductor.validators ?? {}).map(([name, { command }]) => [name, command]);
  expect(Object.fromEntries(commands)).toEqual({ tests: 'c', lint: 'b' });
});

test('of a gate that is told of every 0 seconds people are told once', () => {
  expect(read('[gates]\nremind = "x"\nremind_every = 0').config?.gates.remindEveryMs).toBeNull();
});

test('a file is read over what holds without it', () => {
  const base = { ...DEFAULT_CONFIG, shell: 'bash', defaultAdapter: 'claude' };
  const { config } = readConfig({ file: 'c.toml', text: '[agent]\ndefault_adapter = "codex"', base });
  expect(config).toEqual({ ...base, defaultAdapter: 'codex' });
});

describe('sizes', () => {
  test.each([
    ['"10MB"', 10_000_000],
    ['"1.5 kb"', 1_500],
    ['"2MiB"', 2_097_152],
    ['4096', 4_096],
  ])('%s', (written, bytes) => {
    expect(read(`[limits]\nmax_workflow_file_size = ${written}`).config?.limits.stateFileBytesMax).toBe(bytes);
  });
});

test('keys of other programs for these workflows are ignored', () => {
  const sections = ['defaults', 'orchestrator', 'cleanup', 'logging', 'worktree'].map((name) => `[${name}]\nkey = 1\n`);
  const text = `version = "1"\n[paths]\ntemplate_dir = "x"\n[agent]\nsetup_hooks = true\n${sections.join('')}`;
  expect(readConfig({ file: 'config.toml', text }).diagnostics).toEqual([]);
});

test('an unknown key is a warning, with the key that may be meant', () => {
  const { config, diagnostics } = read('shel = "bash"\n[limits]\nmax_steps = 3\n[web]\nport = 1');
  expect(config).toEqual(DEFAULT_CONFIG);
  expect(diagnostics.map(({ severity, code, span, hint }) => [severity, code, span.line, hint])).toEqual([
    ['warning', 'unknown-key', 1, 'Did you mean "shell"?'],
    ['warning', 'unknown-key', 3, expect.stringContaining('max_total_steps')],
    ['warning', 'unknown-key', 4, expect.stringContaining('limits')],
  ]);
});

describe('a wrong value is an error, and there is no configuration', () => {
  test.each([
    ['shell = 3', 'wrong-type'],
    ['shell = ""', 'invalid-value'],
    ['limits = 3', 'wrong-type'],
    ['[limits]\nmax_total_steps = 0', 'wrong-type'],
    ['[limits]\nmax_total_steps = "many"', 'wrong-type'],
    ['[limits]\nmax_workflow_file_size = "10 apples"', 'invalid-size'],
    ['[limits]\nmax_workflow_file_size = true', 'invalid-size'],
    ['[agents]\ndefault_adapter = ["a"]', 'wrong-type'],
    ['[agent]\ndefault_adapter = " "', 'invalid-value'],
    ['[agents]\nchannel = "mailbox"', 'invalid-value'],
    ['[agents]\nchannel = true', 'wrong-type'],
    ['tmux = "mine"', 'invalid-value'],
    ['tmux = true', 'wrong-type'],
    ['[limits', 'syntax'],
    ['conductor = 3', 'wrong-type'],
    ['[conductor]\nenv_allow = "CI"', 'wrong-type'],
    ['[conductor]\nenv_allow = [3]', 'wrong-type'],
    ['[conductor]\nallow_lockfiles = "yes"', 'wrong-type'],
    ['policy = ["a"]', 'wrong-type'],
    ['[policy]\nx = 1', 'wrong-type'],
    ['[policy.x]\nforbiden_paths = ["a"]', 'unknown-key'],
    ['[policy.x]\nforbidden_paths = ["../a"]', 'invalid-path'],
    ['[policy.x]\nallowed_paths = ["/a"]', 'invalid-path'],
    ['[policy.x]\nforbidden_operations = ["push"]', 'invalid-value'],
    ['[policy.x]\nnetwork = "none"', 'invalid-value'],
    ['[validators.x]', 'missing-key'],
    ['[validators.x]\ncommand = ""', 'invalid-value'],
    ['[validators.x]\ncommand = "a"\nargs = []', 'unknown-key'],
    ['[validators.x]\ncommand = "a"\ncwd = "/tmp"', 'invalid-path'],
    ['[validators.x]\ncommand = "a"\ntimeout = "soon"', 'invalid-duration'],
    ['[validators."a b"]\ncommand = "a"', 'invalid-id'],
    ['[gates]\nremind = ""', 'invalid-value'],
    ['[gates]\nallowed_signers = ""', 'invalid-value'],
    ['[gates]\nremind_every = "often"', 'invalid-duration'],
  ])('%j', (text, code) => {
    const { config, diagnostics } = read(text);
    expect(config).toBeNull();
    expect(diagnostics).toMatchObject([{ severity: 'error', code }]);
  });
});

test('secrets and retention are read, and what is wrong in them has a place', () => {
  const read = (text: string) => readConfig({ file: 'c.toml', text });
  const good = '[secrets]\nenv = ["MY_*"]\n[retention]\nolder_than = "30d"\nkeep = 5\nstatus = ["done"]\n';
  expect(read(good).config).toMatchObject({
    secretNames: ['MY_*'],
    retention: { olderThanMs: 2_592_000_000, keep: 5, status: ['done'] },
  });
  const bad = '[secrets]\nenv = "X"\n[retention]\nolder_than = "soon"\nkeep = -1\nstatus = ["running"]\n';
  const { config, diagnostics } = read(bad);
  expect(config).toBeNull();
  expect(diagnostics.map(({ span }) => span.line)).toEqual([2, 4, 5, 6]);
});
