// What becomes of turns: when they succeed, how they fail, and what is handed on.

import { localRunFiles } from '../../src/stores/local-run-files.ts';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { resolveText } from '../../src/drivers/resolve-text.ts';
import type { Outcome } from '../../src/ir/effect.ts';
import { failedWith } from './agent-rig.ts';
import { outputsOf, shellAdapter, TurnRig, withHoles } from './turn-rig.ts';

let rig: TurnRig;
afterEach(() => rig.close());

function run(script: string, ...adapter: Parameters<typeof shellAdapter>): Promise<Outcome> {
  rig = new TurnRig(shellAdapter(...adapter));
  return rig.run(script);
}

describe('success', () => {
  test('is answered with the text, the session, and what it cost', async () => {
    const outcome = await run('init; say Working; result fine');
    const session = outcome.kind === 'success' ? outcome.session : null;
    expect(outcome).toMatchObject({
      outputs: { result: 'fine', session_id: session, denied: 0 },
      session: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
      usage: { usd: 0.5, tokens: 100 },
    });
    expect(outputsOf(outcome)).not.toHaveProperty('structured');
  });

  test('has the structured answer, and counts what was denied', async () => {
    const more = `'"structured_output":{"name":"Z"},"permission_denials":[{"tool_name":"Bash"}],'`;
    // The later of two keys counts: the function writes an empty list behind it.
    const outcome = await run(`init; result fine ${more} | sed 's/"permission_denials":\\[\\],//'`);
    expect(outputsOf(outcome)).toMatchObject({ structured: { name: 'Z' }, denied: 1 });
  });

  test('is what the last of several results says', async () => {
    const outcome = await run('init; TOTAL=0.1 result first; init; TOTAL=0.3 result second');
    expect(outcome).toMatchObject({ outputs: { result: 'second' }, usage: { usd: 0.3 } });
  });

  test('is not disturbed by lines that nobody can read', async () => {
    const outcome = await run(String.raw`init; echo '{"type":'; echo plain; printf '\377\0\n'; echo; result fine`);
    expect(outputsOf(outcome)).toMatchObject({ result: 'fine' });
  });

  test('needs no line end behind the last line', async () => {
    expect(outputsOf(await run('init; result fine | tr -d "\\n"'))).toMatchObject({ result: 'fine' });
  });
});

describe('failure', () => {
  test('is an error, whatever the exit status', async () => {
    const outcome = await run('init; TOTAL=0.2 error "API Error: 529"; echo on stderr >&2');
    expect(outcome).toMatchObject({
      failure: {
        kind: 'exit-nonzero',
        message: 'the agent failed: API Error: 529',
        code: 0,
        output: 'on stderr',
        session: expect.any(String) as unknown,
        usage: { usd: 0.2 },
      },
    });
  });

  test('is an exit with 0 and no result', async () => {
    expect(await run('init; say "I am done."')).toMatchObject({
      failure: {
        kind: 'output-missing',
        message: 'the agent ended without an answer',
        output: 'I am done.',
        usage: { usd: null, tokens: null },
      },
    });
  });

  test.each([
    ['exit 3', 'exit-nonzero', 'the agent exited with status 3'],
    ['kill -KILL $$', 'signal', 'the agent ended with status 137, as one killed by SIGKILL does'],
    ['result fine; exit 4', 'exit-nonzero', 'the agent exited with status 4'],
  ])('is told by the exit status where the agent tells nothing: %s', async (script, kind, message) => {
    expect(await run(script)).toMatchObject({ failure: { kind, message } });
  });

  test('is a program that is not there', async () => {
    expect(await run('', { command: 'no-such-agent' })).toMatchObject({
      failure: {
        kind: 'exit-nonzero',
        message: 'the agent exited with status 127: a program was not found',
        output: expect.stringContaining('no-such-agent') as unknown,
      },
    });
  });
});

describe('what cannot be started is answered with the reason', () => {
  const refused = async (wish: Parameters<TurnRig['turn']>[1], ...adapter: Parameters<typeof shellAdapter>) => {
    rig = new TurnRig(shellAdapter(...adapter));
    const outcome = await rig.run('init; result fine', wish);
    return outcome.kind === 'failure' ? `${outcome.failure.kind}: ${outcome.failure.message}` : outcome.kind;
  };
  const CANNOT = 'not-started: the agent could not be started:';

  test('an adapter that is not known, or has no turns', async () => {
    expect(await refused({ adapter: 'other' })).toBe(`${CANNOT} there is no adapter other`);
    await rig.close();
    expect(await refused({}, {}, { headless: null })).toBe(
      `${CANNOT} the adapter shell has no way to work without a terminal`,
    );
  });

  test('a session that the adapter cannot go on with, or fork', async () => {
    expect(await refused({ session: { kind: 'resume', id: 's' } }, { resume: null })).toBe(
      `${CANNOT} the adapter shell has no way to go on with a session without a terminal`,
    );
    await rig.close();
    expect(await refused({ session: { kind: 'fork', id: 's' } }, { fork: null })).toBe(
      `${CANNOT} the adapter shell has no way to fork a session without a terminal`,
    );
  });

  test('a model or an effort that it cannot choose', async () => {
    expect(await refused({ effort: 'high' })).toBe(`${CANNOT} the adapter shell has no way to choose an effort`);
  });

  test('a folder that is not there', async () => {
    expect(await refused({ cwd: 'nowhere' })).toMatch(/its folder .*nowhere does not exist$/);
  });

  test('a prompt that is too long for an argument', async () => {
    const script = `#${'x'.repeat(200_000)}`;
    rig = new TurnRig(shellAdapter({ command: withHoles('sh -c {{prompt}}'), prompt: 'argument' }));
    expect(await rig.run(script)).toMatchObject({
      failure: {
        kind: 'not-started',
        message: `the agent could not be started: its command and environment are too long for this system`,
        usage: null,
      },
    });
  });
});

test('a command may be any text of a shell', async () => {
  const command = 'ODD=1 && cd / && read -r line; [ "$ODD$line$PWD" = "1go/" ] && exec echo fine # or else';
  rig = new TurnRig(shellAdapter({ reader: 'text', sessionId: 'none', command }));
  expect(outputsOf(await rig.start(rig.turn('', { prompt: 'go' })))).toMatchObject({ result: 'fine' });
});

test('a command that no shell can read fails as its shell does', async () => {
  rig = new TurnRig(shellAdapter({ reader: 'text', sessionId: 'none', command: 'echo )' }));
  const effect = rig.turn('');
  const outcome = await rig.start(effect);
  expect(outcome).toMatchObject({ failure: { kind: 'exit-nonzero', code: 2 } });
  rig.nextLife();
  expect(await rig.find(effect)).toEqual(outcome);
});

test('between the program and the shell that records there is no other', async () => {
  rig = new TurnRig(shellAdapter({ reader: 'text', sessionId: 'none', command: 'sh' }));
  const effect = rig.turn('echo $PPID');
  const { result } = outputsOf(await rig.start(effect));
  expect(readFileSync(rig.turnFile(effect, 'status'), 'utf8').split(' ')[0]).toBe(result);
});

describe('a prompt', () => {
  const TEXT = { reader: 'text', sessionId: 'none' } as const;

  test('of any size and of any bytes reaches the agent as it is', async () => {
    const prompt = `tab\there, CRLF\r\n, \u001b[31m, \u{1f408}, #{} ; $(x) \`y\` '"\\ ${'long '.repeat(200_000)}\n\n`;
    rig = new TurnRig(shellAdapter({ ...TEXT, command: 'cat > got' }));
    expect(await rig.start(rig.turn('', { prompt }))).toMatchObject({ kind: 'success' });
    expect(readFileSync(rig.path('got'), 'utf8')).toBe(prompt);
  });

  test('is in no list of processes, and in no file that others can read', async () => {
    rig = new TurnRig(shellAdapter({ ...TEXT, command: 'tr "\\0" " " < /proc/$$/cmdline; cat > got' }));
    const effect = rig.turn('', { prompt: 'secret-words' });
    const { result } = outputsOf(await rig.start(effect));
    expect(result).toContain('/prompt');
    expect(result).not.toContain('secret-words');
    expect(statSync(rig.turnFile(effect, 'prompt')).mode & 0o077).toBe(0);
  });

  test('is an argument where the adapter wants it so, and stdin is empty then', async () => {
    const command = withHoles('printf "%s|" {{prompt}}; cat');
    rig = new TurnRig(shellAdapter({ ...TEXT, command, prompt: 'argument' }));
    const outcome = await rig.start(rig.turn('', { prompt: `it's $HOME` }));
    expect(outputsOf(outcome)).toMatchObject({ result: `it's $HOME|` });
  });
});

describe('an answer', () => {
  test('in plain text is all of stdout', async () => {
    const outcome = await run('echo "  two"; echo; echo lines', { reader: 'text', sessionId: 'none', command: 'sh' });
    expect(outcome).toMatchObject({
      outputs: { result: 'two\n\nlines', session_id: null },
      usage: { usd: null, tokens: null },
    });
  });

  test('of more than a megabyte is kept in a file, which later steps can use', async () => {
    const script = 'init; result "$(head -c 30000000 /dev/zero | tr "\\0" x)"';
    const outcome = await run(script, { command: 'bash -s fresh s' });
    expect(outcome).toMatchObject({ kind: 'success', kept: ['result'] });
    const { $file: file, bytes } = outputsOf(outcome)['result'] as { $file: string; bytes: number };
    expect(bytes).toBe(30_000_000);
    const text = resolveText([{ file, quote: [] }], localRunFiles(rig.runFolder));
    expect(text.ok && text.value.length).toBe(30_000_000);
    expect(outcome).toMatchObject({ usage: { usd: 0.5 } });
  });

  test('is found behind a line of 50 MB that says nothing', async () => {
    const outcome = await run(
      `init; printf '{"type":"user","message":{"content":"'; head -c 50000000 /dev/zero | tr '\\0' x; echo '"}}'; result fine`,
    );
    expect(outputsOf(outcome)).toMatchObject({ result: 'fine' });
  });

  test('in plain text of more than a megabyte is kept in a file too', async () => {
    const outcome = await run('head -c 3000000 /dev/zero | tr "\\0" y; echo', {
      reader: 'text',
      sessionId: 'none',
      command: 'sh',
    });
    expect(outcome).toMatchObject({ kept: ['result'], outputs: { result: { bytes: 3_000_000 } } });
  });
});

describe('a usage limit', () => {
  const limits = [{ pattern: String.raw`usage limit reached\|(\d+)`, reset: 'epoch' }] as const;

  test('is told with its end, by what the agent says', async () => {
    expect(
      await run('init; TOTAL=0.1 error "Agent usage limit reached|1794700000"; exit 1', {}, { limits }),
    ).toMatchObject({
      failure: {
        kind: 'limit-reached',
        message: 'the agent has reached a usage limit: Agent usage limit reached|1794700000',
        retryAt: 1_794_700_000_000,
        session: expect.any(String) as unknown,
        usage: { usd: 0.1 },
      },
    });
  });

  test('is told by what stands on stderr, of an agent that writes plain text', async () => {
    const outcome = await run('echo "usage limit reached|1794700000" >&2; exit 1', { reader: 'text' }, { limits });
    expect(outcome).toMatchObject({ failure: { kind: 'limit-reached', retryAt: 1_794_700_000_000 } });
  });

  test('has the same end for every life of the engine that asks, though it is told as a time from then', async () => {
    rig = new TurnRig(shellAdapter({}, { limits: [{ pattern: 'again in (.*)$', reset: 'duration' }] }));
    const effect = rig.turn('init; error "try again in 2h 5m"; exit 1');
    const first = await rig.start(effect);
    rig.nextLife();
    expect(await rig.find(effect)).toEqual(first);
    expect(first).toMatchObject(failedWith('limit-reached'));
  });

  test('is none where the agent succeeds, whatever it talks about', async () => {
    expect(await run('init; result "usage limit reached|1794700000"', {}, { limits })).toMatchObject({
      kind: 'success',
    });
  });
});

describe('the surroundings of an agent', () => {
  const TEXT = { reader: 'text', sessionId: 'none', command: 'sh' } as const;

  test('are those of its step, with its own name, and what its adapter adds', async () => {
    const adapter = shellAdapter(TEXT, { environment: { OWN: withHoles('in {{folder}}'), HOME: '' } });
    rig = new TurnRig(adapter);
    const effect = rig.turn('echo "$MEOW_AGENT|$MEOW_STEP|$MEOW_ATTEMPT|$MEOW_WORKFLOW|$OWN|${HOME-none}|$PWD"', {
      step: 'build',
    });
    const { result } = outputsOf(await rig.start({ ...effect, lane: 'worker' }));
    const folder = rig.turnFile(effect, '.').replace(/\/\.$/, '');
    // The value stands as a word of a shell would.
    expect(result).toBe(
      `worker|build|1|${rig.runId}|in '${folder.replaceAll("'", String.raw`'\''`)}'|none|${rig.folder}`,
    );
  });

  test('have a place for hooks where its adapter has some', async () => {
    const hooks = { begun: 'SessionStart' } as never;
    rig = new TurnRig(shellAdapter(TEXT, { hooks }));
    const effect = rig.turn('cd "$MEOW_HOOKS" && pwd');
    expect(outputsOf(await rig.start(effect))).toMatchObject({ result: rig.turnFile(effect, 'hooks') });
  });

  test('are the folder that the step names', async () => {
    rig = new TurnRig(shellAdapter(TEXT));
    mkdirSync(rig.path('sub'));
    expect(outputsOf(await rig.run('pwd', { cwd: 'sub' }))).toMatchObject({ result: rig.path('sub') });
  });

  test('have the files of its adapter', async () => {
    const files = [{ path: 'set/up.json', format: 'json', content: withHoles('{"agent":"{{agent}}"}') }] as const;
    rig = new TurnRig(shellAdapter({ ...TEXT, command: withHoles('cat {{folder}}/set/up.json') }, { files }));
    expect(outputsOf(await rig.run(''))).toMatchObject({ result: '{"agent":"main"}' });
  });

  test('have a home of its own with what the user has in theirs', async () => {
    const home = { variable: 'ODD_HOME', from: '.odd', link: ['login'], copy: ['config'] };
    rig = new TurnRig(shellAdapter(TEXT, { home }));
    const users = join(rig.options.environment['HOME'] ?? '', '.odd');
    mkdirSync(users);
    for (const name of ['login', 'config']) writeFileSync(join(users, name), name);
    const { result } = outputsOf(await rig.run('cat "$ODD_HOME/config" "$ODD_HOME/login"; echo " $ODD_HOME"'));
    expect(result).toBe(`configlogin ${join(rig.runFolder, 'homes', 'shell')}`);
  });

  test('have the model behind the command', async () => {
    rig = new TurnRig(shellAdapter({ ...TEXT, command: 'echo' }));
    expect(outputsOf(await rig.run('', { model: `it's m` }))).toMatchObject({ result: `--model it's m` });
  });
});

test('a prompt whose parts are kept in files is put together', async () => {
  rig = new TurnRig(shellAdapter({ reader: 'text', sessionId: 'none', command: 'cat' }));
  const kept = join('steps', 'x', '1', 'outputs');
  mkdirSync(join(rig.runFolder, kept), { recursive: true });
  writeFileSync(join(rig.runFolder, kept, 'big'), 'from a file');
  const prompt = ['read this: ', { file: join(kept, 'big'), quote: [] }];
  expect(outputsOf(await rig.start(rig.turn('', { prompt })))).toMatchObject({ result: 'read this: from a file' });
});
