// A page that is left open while the engine or the server dies, the connection is cut, or the computer sleeps: it says that it is
// not connected and since when, and is correct again soon after the connection is back, with nothing missing or doubled.

import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';

import { isAlive, until, waitingStep } from '../rig/rig.ts';
import { agreesWithStatus } from '../rig/run-picture.ts';
import { isLive, Stage } from '../rig/stage.ts';

const STEPS = ['one', 'two', 'three', 'four', 'five'];
/** Of the contract are two seconds; the machine of a test may be busy. bench/ui.ts measures the time. */
const WITHIN_MS = 10_000;

let stage: Stage;
beforeAll(async () => {
  stage = await Stage.open();
});
afterAll(() => stage[Symbol.asyncDispose]());

/** Each test has a run of its own, whose steps it lets go on one by one. */
let run = '';
let count = 0;
beforeEach(async () => {
  count += 1;
  run = `run${count}`;
  const step = (name: string, index: number): string =>
    waitingStep(`${run}-${name}`, index === 0 ? '' : `needs = ["${run}-${STEPS[index - 1]}"]`);
  stage.rig.write(`${run}.meow.toml`, `[main]\n${STEPS.map(step).join('')}`);
  stage.rig.start('run', `${run}.meow.toml`, '--id', run);
  await stage.rig.appears(`${run}-one.began`);
});

/** Lets this step end. */
async function finish(name: string): Promise<void> {
  stage.rig.write(`${run}-${name}.go`, '');
  await stage.rig.decided(run, `step-done ${run}-${name}`);
}

async function opened(): Promise<Page> {
  const page = await stage.tab(`/p/project/r/${run}/timeline`);
  await agreesWithStatus(page, stage.rig, run);
  return page;
}

async function saysNotConnected(page: Page): Promise<void> {
  await page
    .getByRole('status', { name: 'Connection' })
    .getByText(/^Not connected/)
    .waitFor();
  await page.getByText(/^Not connected for .* \(since \d\d:\d\d\)/).waitFor();
}

/** The page is live, and soon correct. */
async function isCorrect(page: Page): Promise<void> {
  await isLive(page);
  const began = performance.now();
  await agreesWithStatus(page, stage.rig, run);
  expect(performance.now() - began).toBeLessThan(WITHIN_MS);
}

test('the engine is killed: the page offers to resume, and follows the next engine', async () => {
  const { rig } = stage;
  const page = await opened();
  await finish('one');
  await rig.appears(`${run}-two.began`);
  await agreesWithStatus(page, rig, run);
  await kill(rig.enginePid(run));
  const resume = page.getByRole('button', { name: 'Resume' });
  await resume.waitFor();
  await page.getByText(/^No engine works on it since \d\d:\d\d/).waitFor();
  expect(await page.getByRole('button', { name: 'Stop' }).count()).toBe(0);
  await agreesWithStatus(page, rig, run);
  await resume.click();
  await rig.decided(run, 'run-resumed');
  await finish('two');
  await isCorrect(page);
  await page.getByRole('button', { name: 'Pause' }).waitFor();
  await page.close();
});

test('the server is killed and started again on its port: an old tab is live as soon as the browser has the new token', async () => {
  const page = await opened();
  const fleet = await stage.tab('/');
  await page.evaluate('globalThis.wasLoaded = true');
  const { port } = stage.ui;
  await kill(stage.ui.live.process.pid ?? 0);
  await saysNotConnected(page);
  await saysNotConnected(fleet);
  await finish('one');
  await finish('two');
  await stage.restart();
  expect(stage.ui.port).toBe(port);
  await page.getByText('Open the address that it printed once, in any tab.').waitFor();
  const requested: string[] = [];
  page.on('request', (request) => requested.push(new URL(request.url()).pathname));
  const door = await stage.tab('/inbox');
  await isCorrect(page);
  expect(await page.evaluate<boolean>('globalThis.wasLoaded')).toBe(true);
  // Only what it lacks: over the socket, not all records again.
  expect(requested.filter((path) => path.endsWith('/records'))).toEqual([]);
  await finish('three');
  await isCorrect(page);
  await isLive(fleet);
  await fleet.getByRole('row', { name: new RegExp(`^${run},`) }).waitFor();
  await Promise.all([page, fleet, door].map((each) => each.close()));
});

test('both are killed: the page is correct after the server is back, and after the run was resumed', async () => {
  const { rig } = stage;
  const page = await opened();
  await finish('one');
  await rig.appears(`${run}-two.began`);
  await kill(stage.ui.live.process.pid ?? 0);
  await kill(rig.enginePid(run));
  await saysNotConnected(page);
  await stage.restart();
  const door = await stage.tab('/');
  await isCorrect(page);
  await page.getByRole('button', { name: 'Resume' }).waitFor();
  rig.start('resume', run);
  await rig.decided(run, 'run-resumed');
  await finish('two');
  await isCorrect(page);
  await Promise.all([page, door].map((each) => each.close()));
});

test('the server is silent while the socket looks open, and answers again', async () => {
  const page = await opened();
  stage.ui.live.kill('SIGSTOP');
  try {
    await saysNotConnected(page);
    await finish('one');
    await finish('two');
  } finally {
    stage.ui.live.kill('SIGCONT');
  }
  await isCorrect(page);
  await page.close();
});

test('the computer sleeps for a minute while the connection is cut and the clock jumps', async () => {
  const page = await stage.profile.newPage();
  await page.clock.install();
  await stage.goTo(page, `/p/project/r/${run}/timeline`);
  await agreesWithStatus(page, stage.rig, run);
  stage.ui.live.kill('SIGSTOP');
  try {
    await finish('one');
    await page.clock.fastForward('01:00');
    await finish('two');
  } finally {
    stage.ui.live.kill('SIGCONT');
  }
  await isCorrect(page);
  // The clock is set back by ten minutes.
  await page.clock.setSystemTime(Date.now() - 600_000);
  await finish('three');
  await isCorrect(page);
  await page.close();
});

test('a torn record that a resume cuts is never shown, and a run that is deleted says so', async () => {
  const { rig } = stage;
  const page = await opened();
  await finish('one');
  await rig.appears(`${run}-two.began`);
  await kill(rig.enginePid(run));
  await page.getByRole('button', { name: 'Resume' }).waitFor();
  // A record that was being written when the engine died.
  const journal = `.meow/workflows/${run}/journal.jsonl`;
  rig.write(journal, `${rig.read(journal)}{"seq":99,"torn`);
  rig.start('resume', run);
  await rig.decided(run, 'run-resumed');
  await isCorrect(page);
  await kill(rig.enginePid(run));
  await rig.shell(`rm -rf .meow/workflows/${run} .meow/workflows/${run}.yaml*`);
  await page.getByRole('alert').getByText('deleted').waitFor();
  await page.close();
});

async function kill(pid: number): Promise<void> {
  process.kill(pid, 'SIGKILL');
  await until(() => !isAlive(pid), `process ${pid} to die`);
}
