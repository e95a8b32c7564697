import { userInfo } from 'node:os';
import { expect, test } from 'vitest';

import type { OutputsDocument, PromptDocument, SessionDocument } from '../../src/web/protocol.ts';
import { isAlive, Rig, shellStep, until } from '../rig/rig.ts';
import { Ui } from '../rig/ui.ts';

const GATED = `[main]\n${shellStep('build', 'echo built; echo careful >&2')}${shellStep(
  'gate',
  "meow await-approval review --prompt 'Is it good?' > said",
  'needs = ["build"]',
)}`;

const G = { project: 'project', run: 'g' };

test('meow ui prints its address, and serves the page to a browser that has exchanged the token', async () => {
  await using rig = await Rig.setup();
  await using ui = await Ui.start(rig);
  expect(ui.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#token=[0-9a-f]{32}$/);
  const page = await ui.request('/');
  expect(page.status).toBe(200);
  const [script = ''] = /\/assets\/main-[^"]+\.js/.exec(page.text) ?? [];
  const asset = await ui.request(script, { headers: { cookie: null, 'accept-encoding': 'br' } });
  expect(asset.status).toBe(200);
  expect(asset.headers).toMatchObject({
    'content-encoding': 'br',
    'cache-control': 'public, max-age=31536000, immutable',
  });
  const session = await ui.json<SessionDocument>('/data/session');
  expect(session).toMatchObject({ readOnly: false, user: userInfo().username });
});

test('a gate of a run that began later appears, and a decision on the page continues the run', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', GATED);
  await using ui = await Ui.start(rig, '--project', '.');
  const socket = ui.socket();
  await socket.send({ kind: 'watch-fleet' });
  await socket.heard('fleet');
  const run = rig.start('run', 'w.meow.toml', '--id', 'g');
  const { fleet } = await socket.heard('fleet', ({ fleet: { needs } }) => needs.length > 0);
  expect(fleet.needs).toMatchObject([{ ...G, gate: 'review', kind: 'gate', prompt: 'Is it good?', step: 'gate' }]);
  await socket.send({ kind: 'follow', of: G, fromSeq: 1 });
  expect(await socket.heard('run')).toMatchObject({ of: G, fromSeq: 1, engine: { pid: rig.enginePid('g') } });
  const decided = await ui.post('/do/decide', { ...G, gate: 'review', approved: true, notes: 'fine' });
  expect([decided.status, decided.text]).toEqual([200, '{"note":"review is approved"}']);
  await socket.heard('records', ({ records }) =>
    records.some(({ decisions }) => decisions.some((each) => each.kind === 'run-ended')),
  );
  expect((await run.ended).code).toBe(0);
  expect(rig.read('said')).toBe('fine\n');
  await socket.heard('engine', ({ engine }) => engine === null);
  const seqs = socket.seqs(G);
  expect(seqs).toEqual(seqs.map((_, index) => index + 1));
  const again = await ui.post('/do/decide', { ...G, gate: 'review', approved: false });
  expect(again.status).toBe(409);
  expect(JSON.parse(again.text)).toMatchObject({ message: 'run g has ended: it is done' });
});

test('a decision about a run without an engine is kept for when it is resumed', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', GATED);
  rig.start('run', 'w.meow.toml', '--id', 'g');
  await rig.decided('g', 'gate-asked gate');
  await using ui = await Ui.start(rig);
  const engine = rig.enginePid('g');
  process.kill(engine, 'SIGKILL');
  await until(() => !isAlive(engine), 'the engine to die');
  const decided = await ui.post('/do/decide', { ...G, gate: 'review', approved: true });
  expect([decided.status, decided.text]).toEqual([200, expect.stringContaining('meow resume g')]);
  expect((await rig.meow('resume', 'g')).code).toBe(0);
});

test('a page that was away gets the records that it lacks, and all of them if its own do not fit', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('one', 'true')}${shellStep('two', 'true', 'needs = ["one"]')}`);
  await rig.meow('run', 'w.meow.toml', '--id', 'g');
  await using ui = await Ui.start(rig);
  const { text, headers } = await ui.request('/data/run/project/g/records');
  const records = text.trimEnd().split('\n');
  const times = records.map((line) => (JSON.parse(line) as { at: number }).at);
  const generation = String(headers['meow-generation']);
  const count = records.length;

  const away = ui.socket();
  await away.send({ kind: 'follow', of: G, fromSeq: 3, generation, lastAt: times[1] ?? 0 });
  expect(await away.heard('run')).toMatchObject({ generation, fromSeq: 3, lastSeq: count });
  await until(() => away.seqs(G).includes(count), 'the last record');
  expect(away.seqs(G)[0]).toBe(3);

  const other = ui.socket();
  await other.send({ kind: 'follow', of: G, fromSeq: 3, generation, lastAt: 1 });
  expect(await other.heard('run')).toMatchObject({ generation, fromSeq: 1 });
  expect(await other.heard('cut')).toMatchObject({ lastSeq: 0 });
  await until(() => other.seqs(G).includes(count), 'the last record');
  expect(other.seqs(G)[0]).toBe(1);

  const ahead = ui.socket();
  await ahead.send({ kind: 'follow', of: G, fromSeq: count + 7, generation, lastAt: times.at(-1) ?? 0 });
  expect(await ahead.heard('run')).toMatchObject({ fromSeq: 1 });
});

test('a step has its prompt and its output, by ranges', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', `[main]\n${shellStep('build', 'seq 1 1000; echo careful >&2')}`);
  await rig.meow('run', 'w.meow.toml', '--id', 'g');
  await using ui = await Ui.start(rig);
  const of = '/data/run/project/g';
  expect(await ui.json<PromptDocument>(`${of}/prompt?step=build`)).toMatchObject({
    kind: 'command',
    attempt: 1,
    texts: [{ name: 'script', text: 'seq 1 1000; echo careful >&2', problem: null }],
  });
  expect(await ui.json<OutputsDocument>(`${of}/outputs?step=build`)).toEqual({
    attempt: 1,
    ended: true,
    streams: [
      { stream: 'stdout', format: 'text', start: 0, size: 3893 },
      { stream: 'stderr', format: 'text', start: 0, size: 8 },
    ],
  });
  const end = await ui.request(`${of}/output?step=build&stream=stdout&from=-9`);
  expect(end.text).toBe('999\n1000\n');
  expect(end.headers).toMatchObject({ 'meow-from': '3884', 'meow-size': '3893' });
  expect((await ui.request(`${of}/output?step=build&stream=stdout&from=2&length=4`)).text).toBe('2\n3\n');
  expect((await ui.request(`${of}/output?step=build&stream=text`)).status).toBe(404);
  expect((await ui.request(`${of}/output?step=build&stream=../../etc`)).status).toBe(400);
  expect((await ui.request(`${of}/outputs?step=nope`)).status).toBe(404);
});
