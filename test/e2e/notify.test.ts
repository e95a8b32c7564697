// Notifications: what arrives, at receivers of all kinds, whatever is killed; and that no run waits for them.

import { createHmac } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { chmodSync } from 'node:fs';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';

import { Rig, shellStep, until, waitingStep } from '../rig/rig.ts';
import { Terminal } from '../rig/terminal.ts';
import { accept, WebhookReceiver } from '../rig/webhook-receiver.ts';

const LINK_LOCAL_NAMES = join(import.meta.dirname, '../fixtures/link-local-names.cjs');

function attempts(rig: Rig, run: string): readonly Readonly<Record<string, unknown>>[] {
  const path = `.meow/workflows/${run}/notified.jsonl`;
  if (!rig.exists(path)) return [];
  const lines = rig.read(path).trim().split('\n').filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** No process is left that sends something. */
async function senderEnds(rig: Rig): Promise<void> {
  await until(() => rig.processes().length === 0, 'the sender to end');
}

const FAILING = shellStep('a', 'false');
const GATE = '[[main.steps]]\nid = "g"\nexecutor = "branch"\ncondition = "meow await-approval release"\n';

test('a failed run is told with every key, signed, and to a command', async () => {
  await using rig = await Rig.setup();
  await using receiver = await WebhookReceiver.start(accept);
  rig.write(
    '.meow/config.toml',
    `[notify]\nwebhook = { url = "$HOOK", secret = "$SIGNING" }\ncommand = "cat > got.json; echo $MEOW_NOTICE $MEOW_WORKFLOW $MEOW_STEP > got"\n`,
  );
  rig.write('w.meow.toml', FAILING);
  const environment = { HOOK: receiver.url, SIGNING: 'between us' };
  expect((await rig.meowWith(environment, 'run', 'w.meow.toml', '--id', 'r1')).code).toBe(1);
  await senderEnds(rig);
  const [{ headers, body } = { headers: {}, body: '' }] = receiver.all;
  expect(receiver.all).toHaveLength(1);
  const message = JSON.parse(body) as Record<string, unknown>;
  const { id, since, at, ...rest } = message;
  expect(Object.keys(message).join(' ')).toBe(
    'id kind run project workflow step gate text since at command url repeat',
  );
  expect(rest).toEqual({
    kind: 'failed',
    run: 'r1',
    project: rig.folder,
    workflow: 'w.meow.toml#main',
    step: 'a',
    gate: null,
    text: 'the command exited with status 1',
    command: 'meow resume r1',
    url: null,
    repeat: 0,
  });
  expect([since, at].every((moment) => !Number.isNaN(Date.parse(String(moment))))).toBe(true);
  expect(headers['x-meow-delivery']).toBe(id);
  const signature = createHmac('sha256', 'between us').update(body).digest('hex');
  expect(headers['x-meow-signature']).toBe(`sha256=${signature}`);
  expect(rig.read('got')).toBe('failed r1 a\n');
  expect(JSON.parse(rig.read('got.json'))).toMatchObject({ id, kind: 'failed', run: 'r1' });
  expect(attempts(rig, 'r1').map(({ channel, status, attempt, error }) => [channel, status, attempt, error])).toEqual(
    expect.arrayContaining([
      ['webhook', 'sent', 1, null],
      ['command', 'sent', 1, null],
    ]),
  );
  expect(rig.read('.meow/workflows/r1/notified.jsonl')).not.toContain('between us');
});

test('a message links to the page of its run while one is served, without its token', async () => {
  await using rig = await Rig.setup();
  await using receiver = await WebhookReceiver.start(accept);
  rig.write('.meow/config.toml', `[notify]\nwebhook = "${receiver.url}"\n`);
  rig.write('w.meow.toml', FAILING);
  const page = rig.start('ui', '--port', '0');
  await until(() => rig.exists('../home/.meow/page.json'), 'the page');
  const { url } = JSON.parse(rig.read('../home/.meow/page.json')) as { url: string };
  await rig.meow('run', 'w.meow.toml', '--id', 'r1');
  await until(() => receiver.all.length === 1, 'the message');
  const [server, token] = url.split('#');
  expect(token).toMatch(/^token=./);
  const link = `${server?.replace(/\/$/, '')}/p/${basename(rig.folder)}/r/r1/timeline`;
  expect(receiver.messages()).toMatchObject([{ run: 'r1', url: link }]);
  page.kill('SIGTERM');
  await page.ended;
  await rig.meow('run', 'w.meow.toml', '--id', 'r2');
  await until(() => receiver.all.length === 2, 'the second message');
  expect(receiver.messages()[1]).toMatchObject({ run: 'r2', url: null });
  await senderEnds(rig);
});

/** Each answers once so, and then accepts. The error is that of the first attempt. */
const BAD_RECEIVERS: readonly (readonly [string, (response: ServerResponse) => void, string])[] = [
  ['answers 500', (response) => void response.writeHead(500).end(), 'status 500'],
  [
    'redirects',
    (response) => void response.writeHead(302, { location: '/elsewhere' }).end(),
    'status 302: redirects are refused',
  ],
  [
    'closes in the middle',
    (response) => {
      response.writeHead(200, { 'content-length': '10' });
      response.write('half', () => response.destroy());
    },
    'aborted',
  ],
  ['hangs', () => {}, 'no answer within 10 s'],
];

test.concurrent.each(BAD_RECEIVERS)('a receiver that %s gets the message again', async (_, respond, error) => {
  await using rig = await Rig.setup();
  await using receiver = await WebhookReceiver.start((count, response) => {
    if (count === 1) respond(response);
    else response.end();
  });
  rig.write('.meow/config.toml', `[notify]\nwebhook = "${receiver.url}"\n`);
  rig.write('w.meow.toml', FAILING);
  await rig.meow('run', 'w.meow.toml', '--id', 'r1');
  await senderEnds(rig);
  expect(attempts(rig, 'r1').map(({ status, attempt, error: why }) => [status, attempt, why])).toEqual([
    ['failed', 1, error],
    ['sent', 2, null],
  ]);
  const [first, second] = receiver.messages();
  expect(receiver.all).toHaveLength(2);
  expect(second).toMatchObject({ id: first?.['id'] });
});

test.concurrent('a receiver that is down gets the message when it is back', async () => {
  await using rig = await Rig.setup();
  const gone = await WebhookReceiver.start(accept);
  const { port, url } = gone;
  await gone[Symbol.asyncDispose]();
  rig.write('.meow/config.toml', `[notify]\nwebhook = "${url}"\n`);
  rig.write('w.meow.toml', FAILING);
  await rig.meow('run', 'w.meow.toml', '--id', 'r1');
  await until(() => attempts(rig, 'r1').length > 0, 'the first attempt');
  await using receiver = await WebhookReceiver.start(accept, port);
  await senderEnds(rig);
  expect(receiver.all).toHaveLength(1);
  expect(String(attempts(rig, 'r1')[0]?.['error'])).toContain('ECONNREFUSED');
});

test('a gate is told while it waits, and its command decides it; the sender ends after the run', async () => {
  await using rig = await Rig.setup();
  await using receiver = await WebhookReceiver.start(accept);
  rig.write(
    '.meow/config.toml',
    `[notify]\non = ["gate", "done"]\nwebhook = { url = "${receiver.url}", format = "slack" }\nrepeat = "1s"\n`,
  );
  rig.write('w.meow.toml', GATE);
  const run = rig.start('run', 'w.meow.toml', '--id', 'r1');
  await until(() => receiver.all.length > 1, 'the message and its repetition');
  const [first = {}, second = {}] = receiver.messages();
  expect(first).toEqual({ text: expect.stringContaining('r1 waits for a decision') });
  expect(String(first['text'])).toContain('meow approve r1 release');
  expect(second).toEqual(first);
  const [one, two] = receiver.all.map(({ headers }) => headers['x-meow-delivery']);
  expect(one).not.toBe(two);
  expect((await rig.meow('approve', 'r1', 'release')).code).toBe(0);
  expect((await run.ended).code).toBe(0);
  await senderEnds(rig);
  expect(String(receiver.messages().at(-1)?.['text'])).toContain('r1 is done');
});

test('a run whose engine was killed is told as stuck; if its sender was killed too, by that of the next run', async () => {
  await using rig = await Rig.setup();
  await using receiver = await WebhookReceiver.start(accept);
  rig.write('.meow/config.toml', `[notify]\nwebhook = "${receiver.url}"\n`);
  rig.write('w.meow.toml', waitingStep('hold'));
  // It has nothing to tell itself.
  rig.write('other.meow.toml', waitingStep('other'));
  const run = rig.start('run', 'w.meow.toml', '--id', 'r1');
  await rig.decided('r1', 'step-started hold');
  await until(() => rig.exists('../home/.meow/sender.lock'), 'the sender');
  await rig.killAll();
  await run.ended;
  expect(receiver.all).toEqual([]);
  const other = rig.start('run', 'other.meow.toml', '--id', 'r2');
  await until(() => receiver.all.length > 0, 'the message');
  rig.write('other.go', '');
  expect((await other.ended).code).toBe(0);
  await senderEnds(rig);
  expect(receiver.messages()).toMatchObject([{ kind: 'stuck', run: 'r1', command: 'meow resume r1' }]);
});

/** Begins, and is silent from then on. */
const MUTE = `[adapter]
name = "mute"
[spawn]
command = "sh ./mute"
[ready]
patterns = ['^mute>']
[liveness]
idle = "20s"
`;

test('an agent in a terminal that is silent for half of its limit is told as stuck, before it is stopped', async () => {
  await using rig = await Rig.setup();
  await using receiver = await WebhookReceiver.start(accept);
  rig.write('.meow/config.toml', `[notify]\non = ["stuck"]\nwebhook = "${receiver.url}"\n`);
  rig.write('.meow/adapters/mute/adapter.toml', MUTE);
  rig.write('mute', `while :; do printf 'mute> '; IFS= read -r line || exit 0; done\n`);
  rig.write(
    'w.meow.toml',
    `[[main.steps]]\nid = "start"\nexecutor = "spawn"\nagent = "worker"\nadapter = "mute"\nchannel = "terminal"
[[main.steps]]\nid = "work"\nexecutor = "agent"\nagent = "worker"\nprompt = "Go."\nneeds = ["start"]\n`,
  );
  const run = rig.start('run', 'w.meow.toml', '--id', 'r1');
  await until(() => receiver.all.length > 0, 'the message');
  expect(rig.decisions('r1')).not.toContain('step-failed work');
  await rig.meow('stop', 'r1');
  await run.ended;
  const [first, ...more] = receiver.messages();
  expect(more).toEqual([]);
  expect(first).toMatchObject({ kind: 'stuck', run: 'r1', step: 'work', command: 'meow why r1 work' });
  expect(String(first?.['text'])).toContain('the agent of step work has been silent for');
});

test('a message that was on its way when the sender was killed arrives from the next one, with the same id', async () => {
  await using rig = await Rig.setup();
  await using receiver = await WebhookReceiver.start((count, response) => {
    if (count > 1) response.end();
  });
  rig.write('.meow/config.toml', `[notify]\nwebhook = "${receiver.url}"\n`);
  rig.write('w.meow.toml', FAILING);
  await rig.meow('run', 'w.meow.toml', '--id', 'r1');
  await until(() => receiver.all.length === 1, 'the first attempt');
  await rig.killAll();
  expect(attempts(rig, 'r1')).toEqual([]);
  await rig.meow('run', 'w.meow.toml', '--id', 'r2');
  await senderEnds(rig);
  const messages = receiver.messages().map(({ run, id }) => `${String(run)} ${String(id)}`);
  expect(messages).toHaveLength(3);
  expect(new Set(messages).size).toBe(2);
});

test('meow notify test tries every channel; its exit code says whether all accepted', async () => {
  await using rig = await Rig.setup();
  await using receiver = await WebhookReceiver.start(
    (count, response) => void response.writeHead(count > 1 ? 500 : 200).end(),
  );
  const none = await rig.meow('notify', 'test');
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('no channel for notifications is configured')]);
  rig.write(
    '.meow/config.toml',
    `[notify]\nwebhook = { url = "${receiver.url}", format = "ntfy" }\ncommand = "cat > got"\n`,
  );
  const { code, stdout } = await rig.meow('notify', 'test', '--json');
  expect([code, JSON.parse(stdout)]).toEqual([
    0,
    [
      { channel: 'webhook', accepted: true, error: null },
      { channel: 'command', accepted: true, error: null },
    ],
  ]);
  expect(receiver.all[0]).toMatchObject({ headers: { title: expect.any(String) }, body: 'a test of meow notify' });
  expect(JSON.parse(rig.read('got'))).toMatchObject({ kind: 'test', run: null, repeat: 0 });
  const failing = await rig.meow('notify', 'test');
  expect([failing.code, failing.stdout]).toEqual([1, 'webhook: not accepted: status 500\ncommand: accepted\n']);
  for (const [url, error] of [
    ['ftp://127.0.0.1/x', 'has the scheme ftp'],
    ['http://169.254.169.254/latest', 'link-local'],
    ['http://%31%36%39.254.169.254/', 'link-local'],
  ] as const) {
    rig.write('.meow/config.toml', '[notify]\nwebhook = "$HOOK"\n');
    const refused = await rig.meowWith({ HOOK: url }, 'notify', 'test');
    expect([refused.code, refused.stdout]).toEqual([1, expect.stringContaining(error)]);
  }
});

test('what is decided within `after` is not told; what waits longer is told then', async () => {
  await using rig = await Rig.setup();
  await using receiver = await WebhookReceiver.start(accept);
  const configure = (after: string): void =>
    rig.write('.meow/config.toml', `[notify]\non = ["gate"]\nwebhook = "${receiver.url}"\nafter = "${after}"\n`);
  rig.write('w.meow.toml', GATE);
  for (const [id, after] of [
    ['r1', '1h'],
    ['r2', '2s'],
  ] as const) {
    configure(after);
    const run = rig.start('run', 'w.meow.toml', '--id', id);
    await rig.decided(id, 'gate-asked g');
    await until(() => rig.exists('../home/.meow/sender.lock'), 'the sender');
    if (id === 'r2') await until(() => receiver.all.length > 0, 'the message');
    expect((await rig.meow('approve', id, 'release')).code).toBe(0);
    expect((await run.ended).code).toBe(0);
    await senderEnds(rig);
  }
  const [{ run, since, at } = {}, ...more] = receiver.messages();
  expect([run, more]).toEqual(['r2', []]);
  expect(Date.parse(String(at)) - Date.parse(String(since))).toBeGreaterThanOrEqual(2_000);
});

test('Discord gets a content, and the desktop a title and a text', async () => {
  await using rig = await Rig.setup();
  await using receiver = await WebhookReceiver.start(accept);
  rig.write(
    '.meow/config.toml',
    `[notify]\ndesktop = true\nwebhook = { url = "${receiver.url}", format = "discord" }\n`,
  );
  rig.write('programs/notify-send', '#!/bin/sh\nprintf "%s\\n" "$@" > shown\n');
  chmodSync(rig.path('programs/notify-send'), 0o755);
  const PATH = `${rig.path('programs')}:${rig.environment['PATH'] ?? ''}`;
  const { code, stdout } = await rig.meowWith({ PATH }, 'notify', 'test');
  expect([code, stdout]).toEqual([0, 'webhook: accepted\ndesktop: accepted\n']);
  const title = `${rig.folder} sends a test`;
  expect(receiver.messages()).toEqual([{ content: `${title}\na test of meow notify` }]);
  if (process.platform === 'linux')
    expect(rig.read('shown')).toBe(`--app-name=meow\n--\n${title}\na test of meow notify\n`);
});

test('the terminal of a run rings only if it is asked to', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', FAILING);
  using terminal = new Terminal(rig, { columns: 90, rows: 20 });
  terminal.record(rig.path('printed'));
  for (const [id, bell] of [
    ['quiet', false],
    ['loud', true],
  ] as const) {
    rig.write('.meow/config.toml', `[notify]\nbell = ${bell}\n`);
    terminal.type(`meow run w.meow.toml --id ${id}; echo "it is $((1 + 1)) $PPID" | sed s/$PPID/over-${id}/`);
    await until(
      () => rig.exists('printed') && rig.read('printed').includes(`it is 2 over-${id}`),
      'the end of the run',
    );
    expect(rig.read('printed').includes('\u0007')).toBe(bell);
  }
});

test.each(['169.254.169.254', '127.0.0.1 169.254.1.1', 'fe80::1', '::ffff:169.254.169.254'])(
  'a name that resolves to %s is refused',
  async (addresses) => {
    await using rig = await Rig.setup();
    rig.write('.meow/config.toml', '[notify]\nwebhook = "http://receiver.test/hook"\n');
    const environment = { NODE_OPTIONS: `--require ${LINK_LOCAL_NAMES}`, LINK_LOCAL: addresses };
    expect(await rig.meowWith(environment, 'notify', 'test')).toMatchObject({
      code: 1,
      stdout: 'webhook: not accepted: receiver.test resolves to a link-local address\n',
    });
  },
);

test('a webhook that is no URL is refused when the run is started, with its place', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', shellStep('a', 'true'));
  rig.write('.meow/config.toml', '[notify]\nwebhook = "example.com/hook"\n');
  const { code, stderr } = await rig.meow('run', 'w.meow.toml');
  expect(code).toBe(1);
  expect(stderr).toContain('.meow/config.toml:2:11');
  expect(stderr).toContain('"webhook" is not a URL');
});
