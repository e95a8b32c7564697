import { describe, expect, test } from 'vitest';
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
`);
  expect(diagnostics).toEqual([]);
  expect(config).toEqual({
    shell: 'bash',
    tmux: 'shared',
    defaultAdapter: 'codex',
    channel: 'headless',
    limits: { ...DEFAULT_CONFIG.limits, expansionDepthMax: 50, stepsMax: 1000, stateFileBytesMax: 10_000_000 },
  });
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
  ])('%j', (text, code) => {
    const { config, diagnostics } = read(text);
    expect(config).toBeNull();
    expect(diagnostics).toMatchObject([{ severity: 'error', code }]);
  });
});
