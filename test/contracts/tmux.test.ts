// Terminals in tmux, with the real program, on separate sockets. Rules tmux/1 to tmux/10 are in
// src/drivers/agent/tmux/.

import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { present, type Result } from '../../src/base/errors.ts';
import { privateSocket } from '../../src/drivers/agent/tmux/setting.ts';
import type { PaneCapture, TerminalPane } from '../../src/drivers/agent/tmux/terminal-pane.ts';
import { type TerminalRequest, Tmux } from '../../src/drivers/agent/tmux/tmux.ts';
import { segmentsOf } from '../../src/drivers/agent/tmux/transcript-segments.ts';
import { findProgram } from '../../src/drivers/recording-shell.ts';
import { localRunFiles } from '../../src/stores/local-run-files.ts';
import { bundled } from '../rig/bundle.ts';
import { appears, gone } from './driver-command-rig.ts';

const PATH = process.env['PATH'] ?? '';
const PROGRAM = present(findProgram('tmux', PATH), 'these tests need tmux');

let folder: string;
let socket: string;
let tmux: Tmux;
let lives: Tmux[];
let opened: number;

beforeEach(() => {
  // The path contains characters that tmux might interpret.
  folder = join(realpathSync(mkdtempSync(join(tmpdir(), 'meow-tmux-'))), "it's #{pid} #[x] ##y #(id) %H");
  mkdirSync(folder);
  socket = join(folder, '..', 'sock');
  lives = [];
  opened = 0;
  tmux = nextLife();
});

afterEach(async () => {
  for (const life of lives) life.close();
  for (const reaching of [{ TMUX: `${socket},0,0` }, sharedVariables()]) {
    const environment = { PATH, ...reaching };
    const pid = spawnSync(PROGRAM, ['-N', 'display-message', '-p', '#{pid}'], { env: environment, encoding: 'utf8' });
    spawnSync(PROGRAM, ['-N', 'kill-server'], { env: environment });
    if (pid.status === 0) await gone(Number(pid.stdout));
  }
  rmSync(join(folder, '..'), { recursive: true, force: true, maxRetries: 5 });
});

/** As the next engine would see the server. */
function nextLife(): Tmux {
  const life = new Tmux({ program: PROGRAM, socket, environment: { PATH, HOME: folder, LEAK: 'from the engine' } });
  lives.push(life);
  return life;
}

/** A user's own server, below the folder of the test. */
function sharedVariables(): Record<string, string> {
  return { PATH, HOME: join(folder, '..'), TMUX_TMPDIR: join(folder, '..'), LANG: 'C.UTF-8' };
}

function sharedLife(): Tmux {
  const life = new Tmux({ program: PROGRAM, socket: null, environment: sharedVariables() });
  lives.push(life);
  return life;
}

/** Runs tmux as a person would. */
function asUser(environment: Record<string, string>, ...args: readonly string[]): string {
  return execFileSync(PROGRAM, args, { env: environment, encoding: 'utf8', cwd: '/' });
}

const onSocket = (...args: readonly string[]): string => asUser({ PATH, LANG: 'C.UTF-8' }, '-u', '-S', socket, ...args);

function has(session: string): boolean {
  try {
    onSocket('has-session', '-t', `=${session}`);
    return true;
  } catch {
    return false;
  }
}

const sessionOf = ({ id }: TerminalPane): string =>
  onSocket('display-message', '-p', '-t', id, '#{session_name}').trim();

const request = (command: readonly string[], more: Partial<TerminalRequest> = {}): TerminalRequest => ({
  name: `meow-test-${++opened}`,
  command,
  cwd: folder,
  environment: { PATH, HOME: folder, LANG: 'C.UTF-8' },
  columns: 100,
  rows: 30,
  scrollback: 5_000,
  transcript: join(folder, `transcript-${opened}`),
  marker: `wf-1.abc:step-${opened}#1`,
  ...more,
});

async function open(command: readonly string[], more: Partial<TerminalRequest> = {}): Promise<TerminalPane> {
  return valueOf(await tmux.open(request(command, more)));
}

function valueOf<T>(result: Result<T, string>): T {
  if (!result.ok) throw new Error(result.error);
  return result.value;
}

/** Runs a script, and then stays. */
const staying = (script: string, ...args: readonly string[]) => [
  'sh',
  '-c',
  `${script}; exec sleep 600`,
  'sh',
  ...args,
];

/** Reads this many bytes into a file that appears when it has them all. */
const taking = (bytes: number, file: string, first = '') =>
  staying(`stty raw -echo; ${first} printf ready; head -c "$1" > "$2.part"; mv "$2.part" "$2"`, String(bytes), file);

async function shows(pane: TerminalPane, pattern: RegExp): Promise<PaneCapture> {
  for (;;) {
    const look = await pane.capture();
    if (look === null) throw new Error(`it was gone before it showed ${pattern}`);
    if (pattern.test(look.lines.join('\n'))) return look;
    await sleep(10);
  }
}

async function untilGone(pane: TerminalPane): Promise<void> {
  while ((await pane.capture()) !== null) await sleep(10);
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(10);
}

/** The only client. */
async function clientPid(): Promise<number> {
  for (;;) {
    const pids = onSocket('list-clients', '-F', '#{client_pid}').trim();
    // Never 0, which would be the whole process group.
    if (/^[1-9]\d*$/.test(pids)) return Number(pids);
    await sleep(5);
  }
}

const bytesOf = async (file: string): Promise<Buffer> => {
  await appears(file);
  return readFileSync(file);
};

const anyText = fc.string({ unit: 'binary', maxLength: 300 }).map((text) => text.replaceAll('\0', ''));
const awkward = fc.array(
  fc.constantFrom(
    ...'\'"\\$~#{}();%=!- \t\r\n\u001b'.split(''),
    '#{',
    '#(',
    '#[',
    '${',
    '😀',
    'é',
    '%end',
    'HOME',
    '\\n',
    '\\',
  ),
  { maxLength: 30 },
);
const text = fc.oneof(
  anyText,
  awkward.map((parts) => parts.join('')),
);

describe('a command to tmux', () => {
  test('any text arrives unchanged', async () => {
    await fc.assert(
      fc.asyncProperty(text, async (said) => {
        valueOf(await tmux.run(['set-option', '-s', '@said', said]));
        expect(valueOf(await tmux.run(['show-options', '-sv', '@said'])).join('\n')).toBe(said);
      }),
      { numRuns: 300 },
    );
  });

  test('arguments stay separate, even a lone semicolon, and reach a program unchanged', async () => {
    let round = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(text, fc.constantFrom(';', '', '-d', '--', '~', 'a;')), { maxLength: 6 }),
        async (args) => {
          const file = join(folder, `arguments-${++round}`);
          const script = 'printf "%s\\0" "$@" > "$0.part"; mv "$0.part" "$0"';
          await open(['sh', '-c', script, file, ...args, 'last']);
          const arrived = (await bytesOf(file)).toString('utf8').split('\0').slice(0, -1);
          expect(arrived).toEqual([...args, 'last']);
        },
      ),
      { numRuns: 30 },
    );
  });

  test('a program without arguments is started, and not treated as a script', async () => {
    const program = join(folder, 'a program; exit');
    writeFileSync(program, '#!/bin/sh\necho $# arguments\nexec sleep 600\n', { mode: 0o755 });
    await shows(await open([program]), /^0 arguments$/m);
  });

  test('NUL is refused with an error', async () => {
    expect(await tmux.run(['set-option', '-s', '@said', 'a\0b'])).toMatchObject({ ok: false });
    expect(await tmux.open(request(['true', 'a\0b']))).toMatchObject({ ok: false });
    expect(has('meow-test-1')).toBe(false);
  });

  test('an unknown command returns the error of tmux', async () => {
    expect(await tmux.run(['no-such-command'])).toEqual({
      ok: false,
      error: expect.stringContaining('no-such-command'),
    });
    expect(await tmux.run(['has-session', '-t', '=none'])).toEqual({
      ok: false,
      error: expect.stringContaining('none'),
    });
  });

  test('answers match their requests, however many are concurrent (tmux/1)', async () => {
    const numbers = [...Array(200).keys()].map(String);
    const answers = await Promise.all(
      numbers.map((number) =>
        tmux.run(number.endsWith('7') ? ['has-session', '-t', `=${number}`] : ['display-message', '-p', number]),
      ),
    );
    for (const [index, answer] of answers.entries()) {
      if (String(index).endsWith('7')) expect(answer.ok).toBe(false);
      else expect(valueOf(answer)).toEqual([String(index)]);
    }
  });
});

describe('an observation', () => {
  test('returns the screen, the cursor, the title and the size of one moment', async () => {
    const script = 'printf "\\033]2;a  title #{pid} ✳\\007one  \\n\\n  two 日本 "; sleep 600';
    const pane = await open(['sh', '-c', script]);
    const look = await shows(pane, /two/);
    expect(look.lines.slice(0, 4)).toEqual(['one', '', '  two 日本', '']);
    expect(look).toMatchObject({
      cursor: { row: 2, column: 11 },
      columns: 100,
      rows: 30,
      inMode: false,
      alternate: false,
    });
    expect(look.title).toBe('a  title #{pid} ✳');
    expect(look.lines).toHaveLength(30);
  });

  test('returns the alternate screen', async () => {
    const pane = await open(staying('printf "\\033[?1049hthere"'));
    expect((await shows(pane, /there/)).alternate).toBe(true);
  });

  test('is null once the program has exited', async () => {
    const pane = await open(['true', '']);
    await untilGone(pane);
    expect(await pane.capture()).toBeNull();
    expect(await pane.type('x')).toBe('gone');
    expect(await pane.press(['Enter'])).toBe('gone');
    expect(await pane.paste(Buffer.from('x'))).toBe('gone');
    expect(await pane.paste(Buffer.alloc(0))).toBe('gone');
    await pane.leaveMode();
    await pane.kill();
    expect(valueOf(await tmux.run(['list-buffers']))).toEqual([]);
  });

  test('returns a screen that looks like the protocol unchanged', async () => {
    const pane = await open(
      staying('for n in 1 2 3 4 5; do printf "%%end 1 $n 1\\n%%error 1 $n 1\\n%%exit\\n%%begin 1 $n 1\\n"; done'),
    );
    const look = await shows(pane, /%begin 1 5 1/);
    expect(look.lines.slice(0, 4)).toEqual(['%end 1 1 1', '%error 1 1 1', '%exit', '%begin 1 1 1']);
    expect(valueOf(await tmux.run(['display-message', '-p', 'still there']))).toEqual(['still there']);
  });

  test('leaves what scrolled off the screen to people, as far as it is kept', async () => {
    const pane = await open(staying('seq 1 400; printf last'), { scrollback: 100 });
    await shows(pane, /^last$/m);
    const everything = onSocket('capture-pane', '-p', '-t', pane.id, '-S', '-1000').trimEnd().split('\n');
    expect(everything.slice(-3)).toEqual(['399', '400', 'last']);
    expect(everything.at(-1)).toBe('last');
    expect(everything.length).toBeGreaterThanOrEqual(100);
    expect(everything.length).toBeLessThanOrEqual(130);
  });
});

describe('input', () => {
  /** Every byte, including the end of a paste, and text that tmux could interpret. */
  const hostile = Buffer.concat([
    Buffer.from([...Array(256).keys()]),
    Buffer.from(
      'tab\there\r\nline\n\nnull\0 #{pid} #(id) ; \u001b[201~ \u001b[31m $HOME ~ 😀 日本 \u0003\u0004\u001a ',
    ),
  ]);

  test.each([
    ['one byte', Buffer.from('x')],
    ['every byte', hostile],
    ['a megabyte', Buffer.concat([randomBytes(1_000_000), hostile])],
  ])('%s is pasted unchanged, and nothing of it is left (tmux/5)', async (_, bytes) => {
    const file = join(folder, 'taken');
    const pane = await open(taking(bytes.length, file));
    await shows(pane, /ready/);
    expect(await pane.paste(bytes)).toBe('done');
    const taken = await bytesOf(file);
    expect(taken.length).toBe(bytes.length);
    expect(taken.equals(bytes)).toBe(true);
    expect(valueOf(await tmux.run(['list-buffers']))).toEqual([]);
    expect(readdirSync(folder).toSorted()).toEqual(['taken', 'transcript-1']);
  });

  test('a paste is bracketed if the program asks for it, even while somebody scrolls in the pane', async () => {
    const file = join(folder, 'taken');
    const expected = '\u001b[200~one\ntwo\u001b[201~';
    const pane = await open(taking(expected.length, file, 'printf "\\033[?2004h";'));
    await shows(pane, /ready/);
    valueOf(await tmux.run(['copy-mode', '-t', pane.id]));
    expect((await pane.capture())?.inMode).toBe(true);
    expect(await pane.paste(Buffer.from('one\ntwo'))).toBe('done');
    expect((await bytesOf(file)).toString()).toBe(expected);
    expect((await pane.capture())?.inMode).toBe(false);
  });

  test('keys and typed text reach the program, even while somebody scrolls in the pane', async () => {
    const file = join(folder, 'taken');
    const typed = 'Enter q #{pid}; ~ $HOME -l é😀 \0 \0\0';
    const expected = `${typed}\r\u001b\u0003\u001b[A`;
    const pane = await open(taking(Buffer.byteLength(expected), file));
    await shows(pane, /ready/);
    valueOf(await tmux.run(['copy-mode', '-t', pane.id]));
    expect(await pane.type(typed)).toBe('done');
    valueOf(await tmux.run(['clock-mode', '-t', pane.id]));
    expect(await pane.press(['Enter', 'Escape', 'C-c', 'Up'])).toBe('done');
    expect((await bytesOf(file)).toString()).toBe(expected);
  });

  test('is not sent if the screen has changed since the observation (tmux/5)', async () => {
    const file = join(folder, 'taken');
    const pane = await open(taking(10, file, 'printf "日本 "; read -r line; printf "a dialog "; read -r line;'));
    const before = await shows(pane, /日本/);
    expect(await pane.type('\n', before)).toBe('done');
    await shows(pane, /dialog/);
    const after = present(await pane.capture(), 'it is gone');
    expect(await pane.paste(Buffer.from('12345'), before)).toBe('changed');
    expect(await pane.type('12345', before)).toBe('changed');
    expect(await pane.press(['Enter'], before)).toBe('changed');
    valueOf(await tmux.run(['copy-mode', '-t', pane.id]));
    expect(await pane.press(['Enter'], after)).toBe('changed');
    expect(await pane.press(['C-j'], present(await pane.capture(), 'it is gone'))).toBe('done');
    const ready = await shows(pane, /ready/);
    expect(await pane.paste(Buffer.from('12345'), ready)).toBe('done');
    expect(await pane.type('67890', present(await pane.capture(), 'it is gone'))).toBe('done');
    expect((await bytesOf(file)).toString()).toBe('1234567890');
    expect(valueOf(await tmux.run(['list-buffers']))).toEqual([]);
    await pane.kill();
    expect(await pane.press(['Enter'], ready)).toBe('gone');
  });

  test('modes end on request', async () => {
    const pane = await open(staying('seq 1 100'));
    valueOf(await tmux.run(['copy-mode', '-t', pane.id]));
    expect((await pane.capture())?.inMode).toBe(true);
    await pane.leaveMode();
    expect((await pane.capture())?.inMode).toBe(false);
  });

  test('is sent once even if the connection is lost meanwhile (tmux/5)', async () => {
    const file = join(folder, 'taken');
    const numbers = [...Array(15).keys()].map((number) => String(number).padStart(4));
    const pane = await open(taking(numbers.length * 4, file));
    await shows(pane, /ready/);
    for (const number of numbers) {
      await pane.capture();
      const client = await clientPid();
      const pasted = pane.paste(Buffer.from(number));
      await sleep(Math.random());
      process.kill(client, 'SIGKILL');
      expect(await pasted).toBe('done');
      await gone(client);
    }
    expect((await bytesOf(file)).toString()).toBe(numbers.join(''));
  });
});

describe('a terminal', () => {
  test('is found again by its marker after a restart, even if its session was renamed', async () => {
    const pane = await open(staying('printf here'), { marker: 'wf-1.abc:spawn #1' });
    onSocket('rename-session', '-t', '=meow-test-1', 'mine now');
    tmux.close();
    tmux = nextLife();
    const found = present(await tmux.find('wf-1.abc:spawn #1'), 'it was not found');
    expect(found.id).toBe(pane.id);
    await shows(found, /here/);
    expect(sessionOf(found)).toBe('mine now');
    expect(await found.paste(Buffer.from('x'))).toBe('done');
    expect(has('meow-test-1')).toBe(false);
    expect(has('mine now')).toBe(true);
    expect(has('mine')).toBe(false);
    expect(await tmux.find('wf-1.abc:spawn #')).toBeNull();
  });

  test('is not created if a session has its name, and a foreign session is not mistaken for it', async () => {
    await open(staying(':'));
    onSocket('new-session', '-d', '-s', 'theirs', 'sleep 600');
    const refusal = await tmux.open(request(staying(':'), { name: 'theirs' }));
    expect(refusal).toEqual({ ok: false, error: 'session theirs already exists' });
    expect(has('theirs')).toBe(true);
    expect(await tmux.find(request([]).marker)).toBeNull();
  });

  test.each(['a:b', 'a.b', '=a', '$1', '', 'a\nb', 'a#{pid}', '-a'])('is not given the name %j', async (name) => {
    expect(await tmux.open(request(staying(':'), { name }))).toMatchObject({ ok: false });
  });

  test('is not created if its folder is missing, or its transcript cannot be created', async () => {
    expect(await tmux.open(request(staying(':'), { cwd: join(folder, 'none') }))).toMatchObject({ ok: false });
    expect(await tmux.open(request(staying(':'), { transcript: join(folder, 'none', 'a') }))).toMatchObject({
      ok: false,
    });
    expect(has('meow-test-1')).toBe(false);
  });

  test('leaves no session behind if its setup fails', async () => {
    expect(await tmux.open(request(staying(':'), { scrollback: -1 }))).toMatchObject({ ok: false });
    expect(has('meow-test-1')).toBe(false);
  });

  test('works in its folder', async () => {
    const file = join(folder, 'where');
    await open(['sh', '-c', 'pwd -P > "$1"', 'sh', file]);
    expect((await bytesOf(file)).toString()).toBe(`${folder}\n`);
  });

  test('is killed with its session, and nothing else is', async () => {
    const other = await open(staying('printf other'));
    const pane = await open(staying(':'));
    onSocket('new-window', '-t', '=meow-test-2:', 'sleep 600');
    await pane.kill();
    expect(await pane.capture()).toBeNull();
    expect(has('meow-test-2')).toBe(false);
    await shows(other, /other/);
  });

  test('that somebody has moved into their own session is killed without that session', async () => {
    const pane = await open(staying(':'));
    onSocket('new-session', '-d', '-s', 'theirs', 'sleep 600');
    onSocket('move-window', '-s', '=meow-test-1:', '-t', '=theirs:');
    expect(sessionOf(pane)).toBe('theirs');
    await pane.kill();
    expect(await pane.capture()).toBeNull();
    expect(has('theirs')).toBe(true);
  });

  test('keeps its size when somebody attaches (tmux/7)', async () => {
    const pane = await open(staying('printf shown'), { columns: 90, rows: 20 });
    expect(await pane.capture()).toMatchObject({ columns: 90, rows: 20 });
    const attach = staying('"$1" -S "$2" attach -t =meow-test-1', PROGRAM, socket);
    const person = await open(attach, { columns: 60, rows: 45, environment: { PATH, LANG: 'C.UTF-8', TMUX: '' } });
    await shows(person, /shown[^]*meow-test/);
    expect(await pane.capture()).toMatchObject({ columns: 90, rows: 20 });
  });

  test('has a private transcript of every byte from the first (tmux/8)', async () => {
    const file = join(folder, 'printed');
    const printed = Buffer.concat([Buffer.from('first'), randomBytes(300_000), Buffer.from('last')]);
    writeFileSync(file, printed);
    const transcript = join(folder, '%Y #{pid} "quoted" $HOME `id`');
    await open(staying('stty raw -echo; cat "$1"', file), { transcript });
    await until(() => statSync(transcript).size === printed.length);
    expect(readFileSync(transcript).equals(printed)).toBe(true);
    expect(statSync(transcript).mode & 0o777).toBe(0o600);
  });

  test('has a transcript in segments, each byte at its offset', async () => {
    const file = join(folder, 'printed');
    const printed = randomBytes(20_000_000);
    writeFileSync(file, printed);
    const transcript = join(folder, 'transcript');
    await open(staying('stty raw -echo; cat "$1"', file), { transcript });
    const size = (): number => {
      const last = segmentsOf(transcript).at(-1);
      return last === undefined ? 0 : last.at + last.size;
    };
    await until(() => size() === printed.length);
    const parts = segmentsOf(transcript);
    expect(parts.length).toBeGreaterThan(1);
    for (const { path, at, size } of parts) {
      expect(readFileSync(path).equals(printed.subarray(at, at + size))).toBe(true);
      expect(statSync(path).mode & 0o777).toBe(0o600);
    }
  });

  test('answers Ctrl-C like any terminal', async () => {
    const pane = await open(['sh', '-c', 'printf on; exec sleep 600']);
    await shows(pane, /on/);
    await pane.press(['C-c']);
    await untilGone(pane);
  });
});

describe('its environment (tmux/7)', () => {
  /** The environment as the program finds it, without tmux's terminal variables. */
  async function found(
    on: Tmux,
    environment: Record<string, string>,
    name = 'environment',
  ): Promise<Record<string, string>> {
    const file = join(folder, name);
    valueOf(await on.open(request(['cp', '/proc/self/environ', file], { environment })));
    const entries = (await appears(file, (text) => text.endsWith('\0'))).split('\0').slice(0, -1);
    return Object.fromEntries(
      entries.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
    );
  }

  const SAID_BY_TMUX = ['PWD', 'SHELL', 'TERM', 'TERM_PROGRAM', 'TERM_PROGRAM_VERSION', 'TMUX', 'TMUX_PANE'];

  test('is exactly the requested one, on a private server', async () => {
    const asked = { PATH, A: ' $HOME #{pid} ;\n"\' 😀', EMPTY: '', 'odd-name%%': '() { :; }' };
    const given = await found(tmux, asked);
    expect(given).toMatchObject(asked);
    expect(Object.keys(given).toSorted()).toEqual([...Object.keys(asked), ...SAID_BY_TMUX].toSorted());
    expect(given['TERM']).toMatch(/^(tmux|screen)-256color$/);
    expect(given['TMUX']).toContain('/sock,');
  });

  test("is exactly the requested one, on the user's server", async () => {
    const users = { ...sharedVariables(), LEAK: 'of the user', LINES_OF: 'one\nLEAK_TOO=two', DISPLAY: ':7' };
    asUser(users, '-f', '/dev/null', 'new-session', '-d', '-s', 'theirs', 'sleep 600');
    const given = await found(sharedLife(), { PATH, A: '1' });
    expect(Object.keys(given).toSorted()).toEqual(['PATH', 'A', ...SAID_BY_TMUX].toSorted());
  });

  test("hides other terminals, has a blank TMUX if requested, and the user's shell", async () => {
    const outer = { TERM: 'xterm', TERM_PROGRAM: 'other', TMUX_PANE: '%99', TMUX: '/other,1,2', SHELL: '/bin/sh' };
    const given = await found(tmux, { PATH, ...outer });
    expect(given).toMatchObject({ TERM: expect.stringMatching(/256color$/), TERM_PROGRAM: 'tmux', SHELL: '/bin/sh' });
    expect(given['TMUX']).not.toContain('/other');
    expect(given['TMUX_PANE']).not.toBe('%99');
    expect(await found(tmux, { PATH, TMUX: '' }, 'blank')).toMatchObject({ TMUX: '' });
  });

  test('may be large, and appears in no file and on no command line', async () => {
    const secret = randomBytes(16).toString('hex');
    const large = Object.fromEntries([...Array(20).keys()].map((n) => [`LARGE_${n}`, secret + 'x'.repeat(10_000)]));
    const pane = await open(staying('printf on'), { environment: { PATH, ...large } });
    await shows(pane, /on/);
    const [pid = ''] = valueOf(await tmux.run(['display-message', '-p', '-t', pane.id, '#{pane_pid}']));
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8').split(secret)).toHaveLength(21);
    const lines = spawnSync('sh', ['-c', 'cat /proc/[0-9]*/cmdline 2>/dev/null'], { encoding: 'latin1' }).stdout;
    expect(lines).toContain(socket);
    expect(lines).not.toContain(secret);
    expect(spawnSync('grep', ['-rl', secret, join(folder, '..')], { encoding: 'utf8' }).stdout).toBe('');
    expect(valueOf(await tmux.run(['show-messages'])).join('\n')).not.toContain(secret);
  });

  test('also applies to processes that are started later in its session', async () => {
    const pane = await open(staying(':'));
    await pane.setEnvironment('LATER', 'a value; #{pid}');
    const file = join(folder, 'later');
    valueOf(
      await tmux.run([
        'new-window',
        '-d',
        '-t',
        '=meow-test-1:',
        '--',
        'sh',
        '-c',
        'printf %s "$LATER" > "$1"',
        'sh',
        file,
      ]),
    );
    expect((await bytesOf(file)).toString()).toBe('a value; #{pid}');
  });
});

describe('the connection', () => {
  /** An engine in its own process, with a private terminal. */
  function engine(script: string): ChildProcess {
    const module = JSON.stringify(bundled(new URL('../../src/drivers/agent/tmux/tmux.ts', import.meta.url)));
    const options = { program: PROGRAM, socket, environment: { PATH, HOME: folder } };
    const source = `
      import { Tmux } from ${module};
      const tmux = new Tmux(${JSON.stringify(options)});
      const opened = await tmux.open(${JSON.stringify(request(staying('printf on')))});
      if (!opened.ok) throw new Error(opened.error);
      const pane = opened.value;
      ${script}`;
    const args = ['--input-type=module', '-e', source];
    child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    return child;
  }

  let child: ChildProcess | null = null;
  afterEach(() => child?.kill('SIGKILL'));

  const sessions = (): string[] => onSocket('list-sessions', '-F', '#{session_name}').trim().split('\n');

  test('ends with a killed engine even during an answer, and agents stay alive (tmux/2)', async () => {
    const child = engine(`
      console.log('on');
      for (;;) await Promise.all(Array.from({ length: 100 }, () => tmux.run(['list-keys'])));`);
    await new Promise((heard) => child.stdout?.once('data', heard));
    const client = await clientPid();
    expect(sessions().some((name) => name.startsWith(`meow-control-${child.pid}-`))).toBe(true);
    child.kill('SIGKILL');
    await gone(client);
    // tmux removes the client first, and its session later.
    await until(() => sessions().length === 1);
    expect(sessions()).toEqual(['meow-test-1']);
    expect(onSocket('list-clients')).toBe('');
    await shows(present(await tmux.find('wf-1.abc:step-1#1'), 'the agent is gone'), /on/);
  });

  test('does not prevent the process from exiting (tmux/4)', async () => {
    const child = engine('await pane.capture();');
    expect(await new Promise((ended) => child.once('exit', ended))).toBe(0);
    await until(() => sessions().length === 1);
    expect(sessions()).toEqual(['meow-test-1']);
  });

  test('is closed on request, and leaves nothing of its own', async () => {
    await open(staying(':'));
    const client = await clientPid();
    tmux.close();
    await gone(client);
    await until(() => sessions().length === 1);
    expect(sessions()).toEqual(['meow-test-1']);
    expect(valueOf(await tmux.run(['display-message', '-p', 'again']))).toEqual(['again']);
  });

  test('its server exits with the last session', async () => {
    valueOf(await tmux.run(['display-message', '-p', 'on']));
    const pid = Number(valueOf(await tmux.run(['display-message', '-p', '#{pid}']))[0]);
    tmux.close();
    await gone(pid);
  });

  test('whose socket was removed kills its server, which nobody could reach any more (tmux/2)', async () => {
    await open(staying(':'));
    const pid = Number(valueOf(await tmux.run(['display-message', '-p', '#{pid}']))[0]);
    rmSync(socket);
    tmux.close();
    await gone(pid);
  });

  test('whose socket was removed also kills its server if its engine is killed', async () => {
    const child = engine("console.log((await tmux.run(['display-message', '-p', '#{pid}'])).value[0]);");
    const pid = Number(await new Promise((heard) => child.stdout?.once('data', heard)));
    rmSync(socket);
    child.kill('SIGKILL');
    await gone(pid);
  });

  test('is made again if its client was killed, and panes are not affected', async () => {
    const pane = await open(staying('printf on'));
    await shows(pane, /on/);
    const client = await clientPid();
    process.kill(client, 'SIGKILL');
    await gone(client);
    expect((await pane.capture())?.lines[0]).toBe('on');
    await clientPid();
    onSocket('detach-client', '-t', onSocket('list-clients', '-F', '#{client_name}').trim());
    expect((await pane.capture())?.lines[0]).toBe('on');
  });

  test('to a killed server answers every request; the next terminal starts another server (tmux/10)', async () => {
    const pane = await open(staying('printf on'));
    await shows(pane, /on/);
    const pid = Number(valueOf(await tmux.run(['display-message', '-p', '#{pid}']))[0]);
    process.kill(pid, 'SIGSTOP');
    const asked = [
      pane.capture(),
      pane.paste(Buffer.from('x')),
      pane.press(['Enter']),
      pane.type('x'),
      tmux.find('wf-1.abc:step-1#1'),
      pane.kill(),
    ];
    const run = tmux.run(['list-sessions']);
    await sleep(20);
    process.kill(pid, 'SIGKILL');
    expect(await Promise.all(asked)).toEqual([null, 'gone', 'gone', 'gone', null, undefined]);
    expect(await run).toMatchObject({ ok: false, error: expect.stringContaining('no connection to tmux') });
    expect(await pane.capture()).toBeNull();

    const next = await open(staying('printf next'));
    await shows(next, /next/);
    // It has the same id, but is another one (tmux/6).
    valueOf(await tmux.run(['new-session', '-d', '-s', 'more', 'sleep 600']));
    expect(
      next.id === pane.id || valueOf(await tmux.run(['list-panes', '-a', '-F', '#{pane_id}'])).includes(pane.id),
    ).toBe(true);
    expect(await pane.capture()).toBeNull();
    expect(await pane.type('not for you')).toBe('gone');
    expect(await pane.paste(Buffer.from('nor this'))).toBe('gone');
    await pane.kill();
    await shows(next, /next$/m);
  });

  test('is not made, and no server is started, for read-only commands', async () => {
    expect(await tmux.find('anything')).toBeNull();
    expect(existsSync(socket)).toBe(false);
  });

  test('of many engines that start one server at once: each has its terminal', async () => {
    const engines = [...Array(8).keys()].map(nextLife);
    const panes = await Promise.all(engines.map((engine) => engine.open(request(staying('printf on')))));
    for (const pane of panes) await shows(valueOf(pane), /on/);
    expect(sessions().filter((name) => name.startsWith('meow-test'))).toHaveLength(8);
  });

  test('of engines that come and go does not stop the server, nor the agents of others', async () => {
    const agent = await open(staying('printf on'));
    const comeAndGo = async (): Promise<void> => {
      for (let round = 0; round < 8; round += 1) {
        const life = nextLife();
        const pane = valueOf(await life.open(request(staying(':'))));
        expect(await pane.capture()).not.toBeNull();
        await pane.kill();
        life.close();
      }
    };
    await Promise.all([comeAndGo(), comeAndGo(), comeAndGo(), comeAndGo()]);
    await shows(agent, /on/);
  });

  test('can be made while the last server is exiting', async () => {
    for (let round = 0; round < 25; round += 1) {
      const life = nextLife();
      valueOf(await life.run(['display-message', '-p', 'on']));
      life.close();
    }
  });

  test('reports if tmux is missing, too old, or would remove a file', async () => {
    const environment = { PATH };
    const missing = new Tmux({ program: join(folder, 'none'), socket, environment });
    expect(await missing.run(['list-sessions'])).toEqual({ ok: false, error: `there is no program ${folder}/none` });

    const old = join(folder, 'old tmux');
    writeFileSync(old, '#!/bin/sh\nif [ "$1" = -V ]; then echo tmux 3.1c; else echo usage >&2; exit 1; fi\n');
    chmodSync(old, 0o755);
    const refusal = await new Tmux({ program: old, socket, environment }).open(request(staying(':')));
    expect(refusal).toEqual({ ok: false, error: 'tmux 3.1c is too old: there must be tmux 3.2 or newer' });

    writeFileSync(socket, 'a file');
    expect(await tmux.run(['list-sessions'])).toMatchObject({ ok: false });
    expect(readFileSync(socket, 'utf8')).toBe('a file');
  });
});

describe("the user's own server", () => {
  const CONFIGURATION = `
    set -g base-index 3
    set -g pane-base-index 2
    set -g history-limit 7
    set -g remain-on-exit on
    set -g pane-border-status top
    set -g window-size largest
    set -g detach-on-destroy off
    set-hook -g after-new-session 'display-message -p "from a hook"'
    set-hook -g after-set-option 'display-message -p "%end 1 1 1"'
    set-hook -g session-created 'set-option -g @created yes'
  `;

  function options(): string {
    const of = (...flags: readonly string[]) => asUser(sharedVariables(), 'show-options', ...flags);
    return [of('-s'), of('-g'), of('-gw'), of('-t', '=theirs:'), of('-w', '-t', '=theirs:')].join('\n');
  }

  test('keeps its settings and its sessions; terminals work as on any other', async () => {
    writeFileSync(join(folder, '..', '.tmux.conf'), CONFIGURATION);
    asUser(sharedVariables(), 'new-session', '-d', '-s', 'theirs', '-x', '120', '-y', '40', 'sleep 600');
    asUser(sharedVariables(), 'set-option', '-g', '@created', 'yes');
    const before = options();
    const shared = sharedLife();
    const script = 'seq 1 400; printf "on %s" "$(stty size)"; read -r line; exit 3';
    const pane = valueOf(await shared.open(request(['sh', '-c', script], { rows: 25, columns: 70 })));
    const look = await shows(pane, /on \d+ \d+/);
    expect(look).toMatchObject({ rows: 25, columns: 70 });
    expect(look.lines.at(-1)).toBe('on 25 70');
    const printed = asUser(sharedVariables(), 'capture-pane', '-p', '-t', pane.id, '-S', '-1000');
    expect(printed.trimEnd().split('\n')).toHaveLength(401);
    expect(options()).toBe(before);
    expect(
      asUser(sharedVariables(), 'display-message', '-p', '-t', '=theirs:', '#{window_width}x#{window_height}'),
    ).toBe('120x40\n');
    expect(
      asUser(sharedVariables(), 'list-sessions', '-F', '#{session_name}')
        .split('\n')
        .filter((name) => name.startsWith('meow-control-')).length,
    ).toBe(1);
    await pane.press(['Enter']);
    await untilGone(pane);
    shared.close();
    await until(() => asUser(sharedVariables(), 'list-sessions', '-F', '#{session_name}') === 'theirs\n');
  });
});

describe('the socket of a run', () => {
  const uid = process.getuid?.() ?? 0;

  test('is in its folder, private, and where a plain tmux finds it', async () => {
    const runFolder = join(folder, '..', 'run');
    mkdirSync(runFolder);
    const run = { files: localRunFiles(runFolder), mark: 'm' };
    const place = valueOf(privateSocket(run));
    expect(place).toEqual({
      folder: join(runFolder, 'tmux'),
      socket: join(runFolder, 'tmux', `tmux-${uid}`, 'default'),
    });
    for (const path of [place.folder, join(place.folder, `tmux-${uid}`)]) {
      expect(lstatSync(path).mode & 0o777).toBe(0o700);
    }
    expect(privateSocket(run)).toEqual({ ok: true, value: place });

    const life = new Tmux({ program: PROGRAM, socket: place.socket, environment: { PATH } });
    valueOf(await life.open(request(staying(':'))));
    const plain = { PATH, TMUX_TMPDIR: place.folder };
    expect(asUser(plain, 'has-session', '-t', '=meow-test-1')).toBe('');
    life.close();
    asUser(plain, 'kill-server');
  });

  test('is among temporary files with an unguessable name, if its path would be too long', () => {
    const mark = `test${process.pid}`;
    const place = valueOf(privateSocket({ files: localRunFiles(join(folder, 'x'.repeat(100))), mark }));
    expect(place.folder).toBe(join(tmpdir(), `meow-${mark}-tmux`));
    rmSync(place.folder, { recursive: true });
  });

  test('is refused if somebody else could have created it', () => {
    const runFolder = join(folder, '..', 'run');
    const run = { files: localRunFiles(runFolder), mark: 'm' };
    mkdirSync(join(runFolder, 'tmux'), { recursive: true });
    chmodSync(join(runFolder, 'tmux'), 0o755);
    expect(privateSocket(run)).toMatchObject({ ok: false });
    rmSync(join(runFolder, 'tmux'), { recursive: true });
    mkdirSync(join(runFolder, 'real'), 0o700);
    symlinkSync(join(runFolder, 'real'), join(runFolder, 'tmux'));
    expect(privateSocket(run)).toMatchObject({ ok: false });
  });
});
