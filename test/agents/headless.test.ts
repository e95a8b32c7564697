// The real agents, headless, against the scripted model: a test of the rig.

import { describe, expect, test } from 'vitest';
import { Live, Rig } from '../rig/rig.ts';
import { ModelServer } from './rig/model-server.ts';
import { type ModelRequest, type Reply, shellCall } from './rig/model-talk.ts';
import { AGENTS_INSTALLED, CLAUDE, CODEX, furnish } from './rig/real-agents.ts';

/** Creates a file, then repeats the output of the tool. */
function twoTurns(request: ModelRequest): Reply {
  return request.last === 'make it'
    ? { call: [shellCall(request, 'echo made | tee made.txt')] }
    : { say: `the tool said ${/\bmade\b/.exec(request.last)?.[0]}` };
}

describe.skipIf(!AGENTS_INSTALLED).each([
  {
    name: 'Claude Code',
    provider: 'anthropic',
    command: [CLAUDE, '-p', 'make it', '--permission-mode', 'bypassPermissions'],
  },
  { name: 'Codex', provider: 'openai', command: [CODEX, 'exec', '-s', 'danger-full-access', 'make it'] },
])('$name', ({ provider, command: [program = '', ...args] }) => {
  test('runs a tool that the model calls, and returns the result', async () => {
    await using model = await ModelServer.start(twoTurns);
    await using rig = await Rig.setup();
    const environment = { ...rig.environment, ...furnish(rig.home, { model, trusted: [rig.folder] }) };
    const { stdout, stderr, code } = await new Live(program, args, rig.folder, environment).ended;
    expect(code, stderr).toBe(0);
    expect(stdout).toContain('the tool said made');
    expect(rig.read('made.txt')).toBe('made\n');
    expect(model.turns.map((turn) => turn.provider)).toEqual([provider, provider]);
    expect(model.turns[0]?.last).toBe('make it');
    expect(new Set(model.turns.map(({ session }) => session)).size).toBe(1);
  });

  test('fails when the model fails', async () => {
    await using model = await ModelServer.start(() => ({ error: { status: 400, message: 'not today' } }));
    await using rig = await Rig.setup();
    const environment = { ...rig.environment, ...furnish(rig.home, { model, trusted: [rig.folder] }) };
    const { stdout, stderr, code } = await new Live(program, args, rig.folder, environment).ended;
    expect(code).toBe(1);
    expect(stdout + stderr).toContain('not today');
  });
});
