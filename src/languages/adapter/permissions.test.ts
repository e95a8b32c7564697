import { expect, test } from 'vitest';

import { type Adapter, permitted } from '../../ir/adapter.ts';
import { readAdapter } from './read-adapter.ts';

const AGENT = `
[adapter]
name = "agent"

[spawn]
command = "agent"
resume_command = "agent --resume {{session_id}}"
session_id = "chosen"
permissions = { ask = "--ask", edits = "--edits", all = "--yes" }

[headless]
command = "agent -p"
permissions.all = "--yes"
reader = "text"

[acp]
command = "agent --acp"
`.replace('command = "agent"\n', 'command = "agent --session {{session_id}}"\n');

function adapter(text = AGENT): Adapter {
  const { adapter: read, diagnostics } = readAdapter({ file: 'adapter.toml', text, readers: ['text'] });
  expect(diagnostics).toEqual([]);
  return read ?? expect.fail();
}

test.each([
  ['ask', ' --ask'],
  ['edits', ' --edits'],
  ['all', ' --yes'],
  [null, ' --yes'],
] as const)('%s: every command of the terminal ends with its arguments', (level, args) => {
  const allowed = permitted(adapter(), 'terminal', level);
  expect(allowed).toMatchObject({
    ok: true,
    value: {
      terminal: {
        command: { parts: expect.arrayContaining([args]) },
        resumeCommand: { parts: expect.arrayContaining([args]) },
      },
    },
  });
});

test('a channel whose agents cannot ask is refused, and another is named', () => {
  const error =
    'agent agents cannot ask for permission (channel "headless", permissions "ask"): channel = "terminal" can';
  expect(permitted(adapter(), 'headless', 'ask')).toEqual({ ok: false, error });
  expect(permitted(adapter(), 'headless', 'all')).toMatchObject({ value: { headless: { command: 'agent -p --yes' } } });
});

test('an adapter that says nothing about permissions can only be allowed everything', () => {
  const silent = adapter('[adapter]\nname = "agent"\n[headless]\ncommand = "agent"\nreader = "text"\n');
  expect(permitted(silent, 'headless', 'all')).toEqual({ ok: true, value: silent });
  const error =
    'agent agents cannot ask for permission (channel "headless", permissions "edits"): only permissions = "all" is possible';
  expect(permitted(silent, 'headless', 'edits')).toEqual({ ok: false, error });
});

test.each([
  [null, 'ask'],
  ['ask', 'ask'],
  ['edits', 'edits'],
  ['all', 'allow'],
] as const)('by the Agent Client Protocol, %s answers requests with: %s', (level, permission) => {
  expect(permitted(adapter(), 'acp', level)).toMatchObject({ value: { acp: { permission } } });
});
