// The real agents in a terminal: a prepared home avoids the dialogs for new users, and only those.

import { describe, expect, test } from 'vitest';
import { Rig } from '../rig/rig.ts';
import { Terminal } from '../rig/terminal.ts';
import { ModelServer } from './rig/model-server.ts';
import { AGENTS_INSTALLED, agentEnvironment, furnish } from './rig/real-agents.ts';

const SIZE = { columns: 120, rows: 40 };

describe.skipIf(!AGENTS_INSTALLED)('in a terminal', () => {
  test.each([
    { name: 'Claude Code', command: 'claude --permission-mode manual' },
    { name: 'Codex', command: 'codex --no-daemon' },
  ])('$name starts to work without a dialog in a prepared home', async ({ command }) => {
    await using model = await ModelServer.start(() => ({ say: 'at your service' }));
    await using rig = await Rig.setup();
    using terminal = open(rig, `${command} 'are you there?'`, furnish(rig.home, { model, trusted: [rig.folder] }));
    await terminal.shows(/at your service/);
    expect(model.turns.map(({ last }) => last)).toEqual(['are you there?']);
  });

  test.each([
    { name: 'Claude Code', command: 'claude --permission-mode manual', question: /Yes, I trust this folder/ },
    { name: 'Codex', command: 'codex --no-daemon', question: /Trust this folder\?/ },
  ])('$name asks about a folder that is new to the home', async ({ command, question }) => {
    await using model = await ModelServer.start(() => ({ say: 'at your service' }));
    await using rig = await Rig.setup();
    using terminal = open(rig, command, furnish(rig.home, { model, trusted: [] }));
    await terminal.shows(question);
    expect(model.log).toEqual([]);
  });

  test('Codex asks a new user to sign in', async () => {
    await using model = await ModelServer.start(() => ({ say: 'at your service' }));
    await using rig = await Rig.setup();
    using terminal = open(rig, 'codex --no-daemon', agentEnvironment(rig.home, model));
    await terminal.shows(/Sign in with ChatGPT/);
  });
});

/** A shell with the agent in its foreground. */
function open(rig: Rig, command: string, environment: Readonly<Record<string, string>>): Terminal {
  const lines = Object.entries(environment).map(([name, value]) => `export ${name}='${value}'`);
  rig.write('environment', `${lines.join('\n')}\n`);
  const terminal = new Terminal(rig, SIZE);
  terminal.type(`. ./environment; ${command}`);
  return terminal;
}
