// Outcomes of turns: success, failure, and outputs.

import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';

import { resolveText } from '../../src/drivers/outputs.ts';
import type { Outcome } from '../../src/ir/effect.ts';
import { localRunFiles } from '../../src/stores/local-run-files.ts';
import { failedWith } from './agent-rig.ts';
import { outputsOf, shellAdapter, TurnRig, withHoles } from './turn-rig.ts';

let rig: TurnRig;
afterEach(() => rig.close());

function run(script: string, ...adapter: Parameters<typeof shellAdapter>): Promise<Outcome> {
  rig = new TurnRig(shellAdapter(...adapter));
  return rig.run(script);
}

describe('success', () => {
  test('is answered with the text, the session, and the cost', async () => {
    const outcome = await run('init; say Working; result fine');
    const session = outcome.kind === 'success' ? outcome.session : null;
    expect(outcome).toMatchObject({
      outputs: { result: 'fine', session_id: session, denied: 0 },
      session: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
      usage: { usd: 0.5, tokens: 100 },
    });
    expect(outputsOf(outcome)).not.toHaveProperty('structured');
  });

  test('has the structured answer, and counts denied actions', async () => {
    const more = `'"structured_output":{"name":"Z"},"permission_denials":[{"tool_name":"Bash"}],'`;
    // The later of two keys wins: the function appends an empty list.
    const outcome = await run(`init; result fine ${more} | sed 's/"permission_denials":\\[\\],//'`);
    expect(outputsOf(outcome)).toMatchObject({ structured: { name: 'Z' }, denied: 1 });
  });

  test('is the last of several results', async () => {
    const outcome = await run('init; TOTAL=0.1 result first; init; TOTAL=0.3 result second');
    expect(outcome).toMatchObject({ outputs: { result: 'second' }, usage: { usd: 0.3 } });
  });

  test('is not affected by unreadable lines', async () => {
    const outcome = await run(String.raw`init; echo '{"type":'; echo plain; printf '\377\0\n'; echo; result fine`);
    expect(outputsOf(outcome)).toMatchObject({ result: 'fine' });
  });

  test('needs no line break after the last line', async () => {
    expect(outputsOf(await run('init; result fine | tr -d "\\n"'))).toMatchObject({ result: 'fine' });
  });
});

describe('failure', () => {
  test('is an error, whatever the exit code', async () => {
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
  ])('is the exit code if the agent reports nothing: %s', async (script, kind, message) => {
    expect(await run(script)).toMatchObject({ failure: { kind, message } });
  });

  test('is a missing program', async () => {
    expect(await run('', { command: 'no-such-agent' })).toMatchObject({
      failure: {
        kind: 'exit-nonzero',
        message: 'the agent exited with status 127: a program was not found',
        output: expect.stringContaining('no-such-agent') as unknown,
      },
    });
  });
});

describe('a turn that cannot be started is answered with the reason', () => {
  const refused = async (wish: Parameters<TurnRig['turn']>[1], ...adapter: Parameters<typeof shellAdapter>) => {
    rig = new TurnRig(shellAdapter(...adapter));
    const outcome = await rig.run('init; result fine', wish);
    return outcome.kind === 'failure' ? `${outcome.failure.kind}: ${outcome.failure.message}` : outcome.kind;
  };
  const CANNOT = 'not-started: the agent could not be started:';

  test('an adapter that is unknown, or has no headless turns', async () => {
    expect(await refused({ adapter: 'other' })).toBe(`${CANNOT} there is no adapter other`);
    await rig.close();
    expect(await refused({}, {}, { headless: null })).toBe(
      `${CANNOT} the adapter shell has no way to work without a terminal`,
    );
  });

  test('a session that the adapter cannot resume, or fork', async () => {
    expect(await refused({ session: { kind: 'resume', id: 's' } }, { resume: null })).toBe(
      `${CANNOT} the adapter shell has no way to resume a session without a terminal`,
    );
    await rig.close();
    expect(await refused({ session: { kind: 'fork', id: 's' } }, { fork: null })).toBe(
      `${CANNOT} the adapter shell has no way to fork a session without a terminal`,
    );
  });

  test('a model or an effort that the adapter cannot choose', async () => {
    expect(await refused({ effort: 'high' })).toBe(`${CANNOT} the adapter shell has no way to choose an effort`);
  });

  test('a missing working directory', async () => {
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

test('a command may be any shell text', async () => {
  const command = 'ODD=1 && cd / && read -r line; [ "$ODD$line$PWD" = "1go/" ] && exec echo fine # or else';
  rig = new TurnRig(shellAdapter({ reader: 'text', sessionId: 'none', command }));
  expect(outputsOf(await rig.start(rig.turn('', { prompt: 'go' })))).toMatchObject({ result: 'fine' });
});

test('a command with a syntax error fails like its shell', async () => {
  rig = new TurnRig(shellAdapter({ reader: 'text', sessionId: 'none', command: 'echo )' }));
  const effect = rig.turn('');
  const outcome = await rig.start(effect);
  expect(outcome).toMatchObject({ failure: { kind: 'exit-nonzero', code: 2 } });
  rig.nextLife();
  expect(await rig.find(effect)).toMatchObject(outcome);
});

test('there is no other shell between the program and the recording shell', async () => {
  rig = new TurnRig(shellAdapter({ reader: 'text', sessionId: 'none', command: 'sh' }));
  const effect = rig.turn('echo $PPID');
  const { result } = outputsOf(await rig.start(effect));
  expect(readFileSync(rig.turnFile(effect, 'status'), 'utf8').split(' ')[0]).toBe(result);
});

describe('a prompt', () => {
  const TEXT = { reader: 'text', sessionId: 'none' } as const;

  test('of any size and of any bytes reaches the agent unchanged', async () => {
    const prompt = `tab\there, CRLF\r\n, \u001b[31m, \u{1f408}, #{} ; $(x) \`y\` '"\\ ${'long '.repeat(200_000)}\n\n`;
    rig = new TurnRig(shellAdapter({ ...TEXT, command: 'cat > got' }));
    expect(await rig.start(rig.turn('', { prompt }))).toMatchObject({ kind: 'success' });
    expect(readFileSync(rig.path('got'), 'utf8')).toBe(prompt);
  });

  test('is in no process list, and in no file that others can read', async () => {
    rig = new TurnRig(shellAdapter({ ...TEXT, command: 'tr "\\0" " " < /proc/$$/cmdline; cat > got' }));
    const effect = rig.turn('', { prompt: 'secret-words' });
    const { result } = outputsOf(await rig.start(effect));
    expect(result).toContain('.prompt');
    expect(result).not.toContain('secret-words');
    expect(statSync(rig.turnFile(effect, 'prompt')).mode & 0o077).toBe(0);
  });

  test('is an argument if the adapter says so, and stdin is then empty', async () => {
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

  test('of more than a megabyte is stored in a file, which later steps can use', async () => {
    const script = 'init; result "$(head -c 30000000 /dev/zero | tr "\\0" x)"';
    const outcome = await run(script, { command: 'bash -s fresh s' });
    expect(outcome).toMatchObject({ kind: 'success', kept: ['result'] });
    const { $file: file, bytes } = outputsOf(outcome)['result'] as { $file: string; bytes: number };
    expect(bytes).toBe(30_000_000);
    const text = resolveText([{ file, quote: [] }], localRunFiles(rig.runFolder));
    expect(text.ok && text.value.length).toBe(30_000_000);
    expect(outcome).toMatchObject({ usage: { usd: 0.5 } });
  });

  test('is found after a line of 50 MB without content', async () => {
    const outcome = await run(
      `init; printf '{"type":"user","message":{"content":"'; head -c 50000000 /dev/zero | tr '\\0' x; echo '"}}'; result fine`,
    );
    expect(outputsOf(outcome)).toMatchObject({ result: 'fine' });
  });

  test('in plain text of more than a megabyte is also stored in a file', async () => {
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

  test('is reported with its reset time, from the agent’s message', async () => {
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

  test('is reported from stderr, for an agent that prints plain text', async () => {
    const outcome = await run('echo "usage limit reached|1794700000" >&2; exit 1', { reader: 'text' }, { limits });
    expect(outcome).toMatchObject({ failure: { kind: 'limit-reached', retryAt: 1_794_700_000_000 } });
  });

  test('has the same reset time after every restart, although it is given as a relative time', async () => {
    rig = new TurnRig(shellAdapter({}, { limits: [{ pattern: 'again in (.*)$', reset: 'duration' }] }));
    const effect = rig.turn('init; error "try again in 2h 5m"; exit 1');
    const first = await rig.start(effect);
    rig.nextLife();
    expect(await rig.find(effect)).toMatchObject(first);
    expect(first).toMatchObject(failedWith('limit-reached'));
  });

  test('is not assumed if the agent succeeds, whatever it says', async () => {
    expect(await run('init; result "usage limit reached|1794700000"', {}, { limits })).toMatchObject({
      kind: 'success',
    });
  });
});

describe('the environment of an agent', () => {
  const TEXT = { reader: 'text', sessionId: 'none', command: 'sh' } as const;

  test('is that of its step, with its own name and the variables of its adapter', async () => {
    const adapter = shellAdapter(TEXT, { environment: { OWN: withHoles('in {{folder}}'), HOME: '' } });
    rig = new TurnRig(adapter);
    const effect = rig.turn('echo "$MEOW_AGENT|$MEOW_STEP|$MEOW_ATTEMPT|$MEOW_WORKFLOW|$OWN|${HOME-none}|$PWD"', {
      step: 'build',
    });
    const { result } = outputsOf(await rig.start({ ...effect, lane: 'worker' }));
    const [folder = ''] = readdirSync(join(rig.runFolder, 'adapters'));
    // The value is quoted as a shell word.
    const quoted = join(rig.runFolder, 'adapters', folder).replaceAll("'", String.raw`'\''`);
    expect(result).toBe(`worker|build|1|${rig.runId}|in '${quoted}'|none|${rig.folder}`);
  });

  test('has a folder for hooks if its adapter has some', async () => {
    const hooks = { begun: 'SessionStart' } as never;
    rig = new TurnRig(shellAdapter(TEXT, { hooks }));
    const effect = rig.turn('cd "$MEOW_HOOKS" && pwd');
    const { result } = outputsOf(await rig.start(effect));
    expect(result).toMatch(/\/adapters\/shell~[0-9a-f]{16}\/hooks$/);
  });

  test('has the working directory of the step', async () => {
    rig = new TurnRig(shellAdapter(TEXT));
    mkdirSync(rig.path('sub'));
    expect(outputsOf(await rig.run('pwd', { cwd: 'sub' }))).toMatchObject({ result: rig.path('sub') });
  });

  test('has the files of its adapter', async () => {
    const files = [{ path: 'set/up.json', format: 'json', content: withHoles('{"agent":"{{agent}}"}') }] as const;
    rig = new TurnRig(shellAdapter({ ...TEXT, command: withHoles('cat {{folder}}/set/up.json') }, { files }));
    expect(outputsOf(await rig.run(''))).toMatchObject({ result: '{"agent":"main"}' });
  });

  test('shares the files of its adapter with all turns of the same contents, and finds them as they should be', async () => {
    const files = [{ path: 'settings.json', format: 'json', content: withHoles('{"agent":"{{agent}}"}') }] as const;
    const command = withHoles('cat {{folder}}/settings.json; cd {{folder}} && pwd >>../said; sh');
    rig = new TurnRig(shellAdapter({ ...TEXT, command }, { files }));
    const tampers = rig.turn('echo {} > settings.json', { step: 'a' });
    await rig.start(tampers);
    expect(outputsOf(await rig.start(rig.turn('', { step: 'b' })))).toMatchObject({ result: '{"agent":"main"}' });
    await rig.start({ ...rig.turn('', { step: 'c' }), lane: 'main_fork1' });
    const said = readFileSync(join(rig.runFolder, 'adapters/said'), 'utf8').trim().split('\n');
    expect(said[1]).toBe(said[0]);
    expect(said[2]).not.toBe(said[0]);
    const own = readdirSync(join(rig.runFolder, 'steps')).filter((name) => name.startsWith('b.'));
    expect(own).toEqual(['b.1.prompt', 'b.1.status', 'b.1.stderr', 'b.1.stdout']);
  });

  test('has its own home folder with a copy of the user’s files', async () => {
    const home = { variable: 'ODD_HOME', from: '.odd', link: ['login'], copy: ['config'] };
    rig = new TurnRig(shellAdapter(TEXT, { home }));
    const users = join(rig.options.environment['HOME'] ?? '', '.odd');
    mkdirSync(users);
    for (const name of ['login', 'config']) writeFileSync(join(users, name), name);
    const { result } = outputsOf(await rig.run('cat "$ODD_HOME/config" "$ODD_HOME/login"; echo " $ODD_HOME"'));
    expect(result).toBe(`configlogin ${join(rig.runFolder, 'homes', 'shell')}`);
  });

  test('has the model as an argument', async () => {
    rig = new TurnRig(shellAdapter({ ...TEXT, command: 'echo' }));
    expect(outputsOf(await rig.run('', { model: `it's m` }))).toMatchObject({ result: `--model it's m` });
  });
});

test('a prompt whose parts are stored in files is assembled', async () => {
  rig = new TurnRig(shellAdapter({ reader: 'text', sessionId: 'none', command: 'cat' }));
  const kept = join('steps', 'x.1.outputs');
  mkdirSync(join(rig.runFolder, kept), { recursive: true });
  writeFileSync(join(rig.runFolder, kept, 'big'), 'from a file');
  const prompt = ['read this: ', { file: join(kept, 'big'), quote: [] }];
  expect(outputsOf(await rig.start(rig.turn('', { prompt })))).toMatchObject({ result: 'read this: from a file' });
});
