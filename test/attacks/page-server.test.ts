// Attacks on the server of `meow ui`, without a browser: nobody but the page of this start sees or changes anything, and
// nothing that is sent stops the server. With a browser: test/ui/attacks.test.ts.

import { readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { tolerate } from '../../src/sys/errors.ts';
import { Rig, shellStep, until, waitingStep } from '../rig/rig.ts';
import { type Response, Ui, type UiSocket } from '../rig/ui.ts';

const RUN = '/data/run/project/held';
const HELD = { project: 'project', run: 'held' };
const GET_PATHS = ['/', '/inbox', '/p/project/r/held/timeline', '/data/session', '/data/workflows', `${RUN}/records`];
const ACTIONS = ['decide', 'stop', 'pause', 'resume', 'retry', 'start'];
const DECIDE = { ...HELD, gate: 'push', approved: true };

let rig: Rig;
let ui: Ui;
beforeAll(async () => {
  rig = await Rig.setup();
  const ask = shellStep('ask', 'meow await-approval push');
  rig.write('w.meow.toml', `[main]\n${shellStep('say', 'seq 1 200000')}${ask}${waitingStep('hold')}`);
  rig.start('run', 'w.meow.toml', '--id', 'held');
  await rig.decided('held', 'gate-asked ask');
  await rig.decided('held', 'step-done say');
  ui = await Ui.start(rig);
});
afterAll(async () => {
  await ui[Symbol.asyncDispose]();
  await rig[Symbol.asyncDispose]();
});

/** The server answers, and nobody has decided. */
async function isUnharmed(): Promise<void> {
  expect((await ui.request('/data/session')).status).toBe(200);
  expect(ui.live.process.exitCode).toBeNull();
  expect(rig.decisions('held').filter((each) => /gate-decided|ended|paus|stop/.test(each))).toEqual([]);
}

describe('a request', () => {
  test('with a foreign Host, as after DNS rebinding, or without one is refused before anything else', async () => {
    const hosts = [
      'evil.test',
      `evil.test:${ui.port}`,
      '127.0.0.1',
      `127.0.0.1:${ui.port + 1}`,
      `127.0.0.1.evil.test:${ui.port}`,
    ];
    for (const host of [...hosts, `[::1]:${ui.port}`, `0.0.0.0:${ui.port}`, `localhost.:${ui.port}`]) {
      for (const path of [...GET_PATHS, '/assets/x', '/terminal-frame'])
        expect((await ui.request(path, { headers: { host } })).status, `${host} ${path}`).toBe(421);
      const post = await ui.post('/do/decide', DECIDE, { host, origin: `http://${host}` });
      expect(post.status, host).toBe(421);
      expect((await ui.post('/do/token', { token: ui.token }, { host, origin: `http://${host}` })).status).toBe(421);
      const socket = ui.socket({ host, origin: `http://${host}` });
      await until(() => socket.ended !== null, 'the refusal');
      expect(socket.ended?.status).toBe(421);
    }
    expect((await ui.request('/', { headers: { host: `LocalHost:${ui.port}` } })).status).toBe(200);
    expect(await raw('GET /data/session HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1.1 4(00|21) /);
    expect(await raw('GET /data/session HTTP/1.1\r\n\r\n')).toMatch(/^HTTP\/1.1 4(00|21) /);
    await isUnharmed();
  });

  test('that writes needs the Origin of the page, also over the socket', async () => {
    const origins = [null, 'null', 'https://evil.test', 'file://', `https://127.0.0.1:${ui.port}`];
    const foreign = [
      `http://127.0.0.1:${ui.port + 1}`,
      `http://localhost:${ui.port}`,
      `${ui.origin}.evil.test`,
      `${ui.origin}/`,
    ];
    for (const origin of [...origins, ...foreign]) {
      for (const action of ACTIONS)
        expect((await ui.post(`/do/${action}`, DECIDE, { origin })).status, `${origin} ${action}`).toBe(403);
      expect((await ui.post('/do/token', { token: ui.token }, { origin })).status).toBe(403);
      if (origin === null) continue;
      const socket = ui.socket({ origin });
      await until(() => socket.ended !== null, 'the refusal');
      expect(socket.ended?.status, origin).toBe(403);
    }
    expect(await raw(upgrade({ origin: null }))).toMatch(/^HTTP\/1.1 403 /);
    await isUnharmed();
  });

  test('without the cookie of this start sees nothing, whether the run exists or not', async () => {
    const [name, secret = ''] = ui.cookie.split('=');
    const cookies = [
      null,
      '',
      `${name}=`,
      `${name}=${ui.token}`,
      `${name}=${secret.slice(1)}`,
      `${name}=${'0'.repeat(secret.length)}`,
      `meow-${ui.port + 1}=${secret}`,
      `x${name}=${secret}`,
    ];
    for (const cookie of cookies) {
      const pages = [];
      for (const path of GET_PATHS) {
        const response = await ui.request(path, { headers: { cookie } });
        expect(response.status, `${cookie} ${path}`).toBe(401);
        expect(response.text).not.toMatch(/held|project"|w\.meow/);
        if (!path.startsWith('/data')) pages.push(response.text);
      }
      pages.push((await ui.request('/p/project/r/none/timeline', { headers: { cookie } })).text);
      pages.push((await ui.request('/p/none/r/none/nothing', { headers: { cookie } })).text);
      expect(new Set(pages).size).toBe(1);
      for (const action of ACTIONS) expect((await ui.post(`/do/${action}`, DECIDE, { cookie })).status).toBe(401);
      const socket = ui.socket({ cookie: cookie ?? '' });
      await until(() => socket.ended !== null, 'the refusal');
      expect(socket.ended?.status).toBe(401);
    }
    for (const token of [
      '',
      'x',
      ui.token.slice(1),
      `${ui.token}0`,
      ui.token.toUpperCase(),
      secret,
      null,
      7,
      [ui.token],
      {},
    ])
      if (token !== ui.token) expect((await ui.post('/do/token', { token }, { cookie: null })).status).toBe(401);
    await isUnharmed();
  });

  test('with the token or the cookie of an earlier start is refused by the next one on the same port', async () => {
    const old = await Ui.start(rig);
    const [{ port }, token, cookie] = [old, old.token, old.cookie];
    await old[Symbol.asyncDispose]();
    await using next = await Ui.start(rig, '--port', String(port));
    expect(next.port).toBe(port);
    expect((await next.request('/data/session', { headers: { cookie } })).status).toBe(401);
    expect((await next.post('/do/token', { token }, { cookie: null })).status).toBe(401);
    expect((await next.request('/data/session')).status).toBe(200);
  });

  test('of another method is 405, and every response has the policy', async () => {
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD', 'TRACE', 'PROPFIND'])
      for (const path of ['/', '/do/decide', RUN])
        expect((await ui.request(path, { method, headers: { cookie: null } })).status, method).toBe(405);
    expect((await ui.request('/do/decide')).status).toBe(405);
    const [script = ''] = /\/assets\/main-[^"]+\.js/.exec((await ui.request('/')).text) ?? [];
    const responses = await Promise.all([
      ui.request('/'),
      ui.request('/p/project/r/none'),
      ui.request('/', { headers: { cookie: null } }),
      ui.request('/', { headers: { host: 'evil.test' } }),
      ui.request('/data/session'),
      ui.request('/data/none'),
      ui.request(script),
      ui.request(`${RUN}/output?step=say&stream=stdout`),
      ui.request('/', { method: 'PUT' }),
      ui.post('/do/decide', {}),
    ]);
    for (const { headers } of responses) {
      expect(headers['content-security-policy']).toMatch(
        /^default-src 'none'; script-src 'self'; .*frame-ancestors 'none'/,
      );
      expect(headers['content-security-policy']).not.toMatch(/unsafe|\*/);
      expect(headers).toMatchObject({ 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
    }
  });

  test('that is broken, too long or without end is refused, and never answered with an error of the server', async () => {
    const bodies = [
      '',
      '{',
      'null',
      '[]',
      '"x"',
      '{"project":1}',
      '\u0000',
      '{"__proto__":{"project":"project"}}',
      '{"project":"project"}',
    ];
    for (const body of bodies)
      for (const action of [...ACTIONS, 'token', 'none', '__proto__', 'constructor']) {
        const { status } = await ui.request(`/do/${action}`, { method: 'POST', body });
        expect(status, `${action} ${body}`).toBeGreaterThanOrEqual(400);
        expect(status, `${action} ${body}`).toBeLessThan(500);
      }
    const huge = Buffer.alloc(1024 * 1024 + 1, 'x');
    for (const path of ['/do/decide', '/do/token'])
      expect(await statusOrClosed(ui.request(path, { method: 'POST', body: huge }))).toMatch(/413|closed/);
    expect(await raw('GET / HTTP/1.1\r\nHost: x\r\n' + 'a: b\r\n'.repeat(50_000))).toMatch(/^(HTTP\/1.1 4\d\d |$)/);
    expect(await raw('\u0000\u0001\u0002\r\n\r\n')).toMatch(/^(HTTP\/1.1 400 |$)/);
    expect(await raw(`POST /do/decide HTTP/1.1\r\nHost: 127.0.0.1:${ui.port}\r\nContent-Length: -1\r\n\r\n`)).toMatch(
      / 400 /,
    );
    await isUnharmed();
  });
});

describe('a path', () => {
  const TRICKS = [
    '..',
    '.',
    '%2e%2e',
    '%2e%2e%2f%2e%2e%2fetc%2fpasswd',
    '..%5c..%5cetc',
    '%00',
    'held%00',
    '%ff%fe',
    '%',
    '%zz',
    'held/../held',
    '/etc/passwd',
    '%2fetc%2fpasswd',
    'held.yaml.lock',
    '__proto__',
    'constructor',
    'x'.repeat(5_000),
    '%F0%9F%90%88',
    'journal.jsonl',
  ];

  test('that names nothing in the lists of the server reads no file, in every route', async () => {
    const routes = TRICKS.flatMap((trick) => [
      `/${trick}`,
      `/assets/${trick}`,
      `/data/${trick}`,
      `/data/run/${trick}/held/records`,
      `/data/run/project/${trick}/records`,
      `/data/run/project/held/${trick}`,
      `${RUN}/output?step=${trick}&stream=stdout`,
      `${RUN}/output?step=say&stream=${trick}`,
      `${RUN}/output?step=say&attempt=${trick}&stream=stdout`,
      `${RUN}/prompt?step=${trick}`,
      `${RUN}/record?seq=${trick}`,
      `${RUN}/text?seq=1&at=${trick}`,
      `${RUN}/stored?step=say&output=${trick}`,
      `${RUN}/diff?step=${trick}`,
      `/data/workflow?project=${trick}&path=w.meow.toml`,
      `/data/workflow?project=project&path=${trick}`,
      `/p/${trick}/r/held/timeline`,
      `/p/project/r/${trick}/timeline`,
      `/p/project/r/held/${trick}`,
    ]);
    for (const route of routes) {
      const { status, text } = await ui.request(route);
      expect(status, route).toBeGreaterThanOrEqual(200);
      expect(status, route).toBeLessThan(500);
      expect(text, route).not.toMatch(/root:|"pid":|"checksum"/);
    }
    const proxied = await raw(
      `GET http://evil.test/ HTTP/1.1\r\nHost: 127.0.0.1:${ui.port}\r\nConnection: close\r\n\r\n`,
    );
    expect(proxied).toMatch(/^HTTP\/1.1 4\d\d /);
    for (const path of ['../w.meow.toml', '/etc/passwd', './w.meow.toml', '.meow/../w.meow.toml', 'w.meow.toml\u0000'])
      expect((await ui.post('/do/start', { project: 'project', path, variables: {} })).status).toBe(404);
    for (const run of ['..', '../held', '.', '', 'held/../held', 'held\u0000', '/etc'])
      for (const action of ACTIONS.slice(0, -1))
        expect((await ui.post(`/do/${action}`, { ...DECIDE, run })).status, `${action} ${run}`).toBe(404);
    await isUnharmed();
  });

  test('leads through no symbolic link: not of a run, and not of an output', async () => {
    rig.write('said.meow.toml', `[main]\n${shellStep('say', 'echo said')}`);
    await rig.meow('run', 'said.meow.toml', '--id', 'aside');
    const runs = rig.path('.meow/workflows');
    writeFileSync(rig.path('secret'), 'the-secret\n');
    const steps = join(runs, 'aside/steps');
    for (const name of readdirSync(steps).filter((each) => each.endsWith('.stdout'))) {
      rmSync(join(steps, name));
      symlinkSync(rig.path('secret'), join(steps, name));
    }
    symlinkSync('/etc', join(runs, 'etc'));
    const aside = '/data/run/project/aside';
    for (const path of [
      `${aside}/outputs?step=say`,
      `${aside}/output?step=say&stream=stdout`,
      '/data/run/project/etc/records',
      '/data/run/project/etc/output?step=passwd&stream=stdout',
    ]) {
      const { status, text } = await ui.request(path);
      expect(status, path).toBeLessThan(500);
      expect(text, path).not.toMatch(/the-secret|root:|"decisions"/);
    }
    rmSync(join(runs, 'etc'));
  });
});

test('runs of one id in two projects keep their outputs apart', async () => {
  const steps = (says: string): readonly [string, string] => [
    `[main]
[[main.steps]]
id = "start"
executor = "spawn"
agent = "worker"
adapter = "sim"
channel = "headless"
[[main.steps]]
id = "work"
executor = "agent"
agent = "worker"
prompt = "Go."
needs = ["start"]
`,
    `[[on]]\nstep = "work"\ndo = [{ say = "${says}" }, { done = true }]\n`,
  ];
  for (const [folder, says] of [
    ['left', 'a secret of left'],
    ['right', 'of right'],
  ] as const) {
    const [workflow, script] = steps(says);
    rig.write(`${folder}/.meow/config.toml`, '');
    rig.write(`${folder}/a.meow.toml`, workflow);
    rig.write(`${folder}/a.sim.toml`, script);
    expect(await rig.meowIn(rig.path(folder), 'run', 'a.meow.toml', '--id', 'same')).toMatchObject({ code: 0 });
  }
  await using both = await Ui.start(rig, '--project', 'left', '--project', 'right');
  const text = async (project: string): Promise<string> =>
    (await both.request(`/data/run/${project}/same/output?step=work&stream=text`)).text;
  expect(await text('left')).toContain('a secret of left');
  expect(await text('right')).toMatch(/^(?![^]*secret)[^]*of right/);
});

describe('sockets', () => {
  test('beyond 64 are refused, a thousand more harm nobody, and the places are free again when they close', async () => {
    const own = ui.socket();
    await own.send({ kind: 'follow', of: HELD, fromSeq: 1 });
    await own.heard('run');
    const others = Array.from({ length: 1_000 }, () => ui.socket());
    const isDecided = (socket: UiSocket): boolean =>
      socket.ended !== null || socket.messages.some(({ kind }) => kind === 'hello');
    await until(() => others.every(isDecided), 'a thousand answers');
    const open = others.filter(({ ended }) => ended === null);
    expect(open).toHaveLength(63);
    expect(new Set(others.flatMap(({ ended }) => ended?.status ?? []))).toEqual(new Set([503]));
    await own.send({ kind: 'ping' });
    await own.heard('pong');
    await isUnharmed();
    for (const socket of others) socket.close();
    let next = ui.socket();
    await until(() => {
      if (next.ended !== null) next = ui.socket();
      return next.messages.length > 0;
    }, 'a free place');
  });

  test('that send what is not of the protocol are closed, and idle connections without a request do not pile up work', async () => {
    const texts = [
      '',
      '{',
      '[]',
      'null',
      '{"kind":"none"}',
      '{"kind":"follow"}',
      '{"kind":"follow","of":{"project":"project","run":"held"},"fromSeq":-1}',
      '{"kind":"follow","of":{"project":"project","run":"held"},"fromSeq":1e300}',
      '{"kind":"follow","of":{"project":1,"run":[]},"fromSeq":1}',
      '{"kind":"__proto__"}',
      'x'.repeat(1024 * 1024 + 1),
    ];
    for (const text of [...texts, Buffer.from([0xff, 0xfe])]) {
      const socket = ui.socket();
      await socket.sendText(text);
      await until(() => socket.ended !== null, `the end after ${String(text).slice(0, 60)}`);
      expect([1008, 1009, 1006, 1007]).toContain(socket.ended?.code);
    }
    const lost = ui.socket();
    for (const run of ['..', '../held', 'none', ''])
      await lost.send({ kind: 'follow', of: { project: 'project', run }, fromSeq: 1 });
    await until(() => lost.messages.filter(({ kind }) => kind === 'lost').length === 4, 'four refusals');
    const idle = Array.from({ length: 200 }, () => connect(ui.port, '127.0.0.1').on('error', () => {}));
    await isUnharmed();
    for (const socket of idle) socket.destroy();
  });

  test('of pages that do not read are dropped, and the server keeps nothing for them', async () => {
    const before = memoryOf(ui);
    // Responses of which nobody reads a byte, and a page that hangs while it asks for all of them.
    const readers = Array.from({ length: 20 }, () => {
      const socket = connect(ui.port, '127.0.0.1').on('error', () => {});
      socket.pause();
      socket.write(
        `GET ${RUN}/output?step=say&stream=stdout HTTP/1.1\r\nHost: 127.0.0.1:${ui.port}\r\nCookie: ${ui.cookie}\r\n\r\n`,
      );
      return socket;
    });
    const hangs = ui.socket();
    await hangs.opened();
    hangs.pause();
    for (let count = 0; count < 2_000; count++) await hangs.send({ kind: 'follow', of: HELD, fromSeq: 1 });
    const other = ui.socket();
    await other.send({ kind: 'follow', of: HELD, fromSeq: 1 });
    await other.heard('run');
    await isUnharmed();
    expect(memoryOf(ui) - before).toBeLessThan(150);
    for (const reader of readers) reader.destroy();
    hangs.close();
  });
});

test('--read-only refuses every action, also with the cookie, but still lets a browser in', async () => {
  await using reader = await Ui.start(rig, '--read-only');
  for (const action of [...ACTIONS, 'none'])
    expect((await reader.post(`/do/${action}`, DECIDE)).status, action).toBe(403);
  const socket = reader.socket();
  await socket.heard('hello', ({ readOnly }) => readOnly);
  await socket.sendText(JSON.stringify({ kind: 'type-keys', of: HELD, agent: 'worker', bytes: 'eQ==' }));
  expect((await reader.request(`${RUN}/records`)).status).toBe(200);
  expect(await reader.json('/data/session')).toMatchObject({ readOnly: true });
  await isUnharmed();
});

test('the token is in no log, no file of a run or project, and no argument of a process', async () => {
  await using other = await Ui.start(rig);
  await other.request(`/#token=${other.token}`);
  expect(other.live.printed.split(other.token)).toHaveLength(2);
  for (const pid of rig.processes())
    expect(textOf(`/proc/${pid}/cmdline`), `process ${pid}`).not.toContain(other.token);
  for (const file of filesBelow(rig.folder)) expect(textOf(file), file).not.toContain(other.token);
  // Only a file that nobody else may read may have it, outside of projects.
  for (const file of filesBelow(rig.home))
    if (textOf(file).includes(other.token)) expect(statSync(file).mode & 0o077, file).toBe(0);
});

test('--listen needs TLS or an explicit --insecure-plain-http, and says what to do', async () => {
  for (const place of ['0.0.0.0:0', '127.0.0.1:0', '[::1]:0']) {
    const { code, stdout, stderr } = await rig.meow('ui', '--listen', place);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/without encryption[^]*--tls-cert FILE --tls-key FILE[^]*--insecure-plain-http/);
  }
  const plain = rig.start('ui', '--listen', '127.0.0.1:0', '--insecure-plain-http');
  expect(await plain.firstLine()).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#token=/);
  await plain.line(/everybody who can reach[^]*the token can be read on the network/);
  plain.kill('SIGTERM');
  await plain.ended;
});

test('a port in use is named, with exit code 1', async () => {
  const { code, stdout, stderr } = await rig.meow('ui', '--port', String(ui.port));
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toMatch(new RegExp(`port ${ui.port} of 127\\.0\\.0\\.1 is in use\n.*--port 0`));
});

/** What the server sends back to these bytes; empty if it just closes. */
function raw(bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const socket = connect(ui.port, '127.0.0.1');
    socket.setEncoding('latin1').on('data', (data: string) => {
      text += data;
      if (text.includes('\r\n\r\n')) socket.destroy();
    });
    // It may close before everything is written.
    socket.on('error', () => socket.destroy());
    socket.on('close', () => resolve(text));
    socket.write(bytes, 'latin1');
  });
}

function upgrade({ origin }: { readonly origin: string | null }): string {
  const headers = [
    `Host: 127.0.0.1:${ui.port}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    `Cookie: ${ui.cookie}`,
    ...(origin === null ? [] : [`Origin: ${origin}`]),
  ];
  return `GET /socket HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`;
}

async function statusOrClosed(response: Promise<Response>): Promise<string> {
  try {
    return String((await response).status);
  } catch (error) {
    if (error instanceof Error && 'code' in error && ['EPIPE', 'ECONNRESET'].includes(String(error.code)))
      return 'closed';
    throw error;
  }
}

/** In MB. */
function memoryOf({ live }: Ui): number {
  const [, kilobytes = ''] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${live.process.pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1024;
}

/** Empty if it is gone: processes end, and files are renamed meanwhile. */
function textOf(file: string): string {
  return tolerate(['ENOENT', 'ESRCH'], '', () => readFileSync(file, 'latin1'));
}

function filesBelow(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}
