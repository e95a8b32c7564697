// Allowed transitions, reminders for invalid answers, and implicit transitions.

import { describe, expect, test } from 'vitest';
import type { RunObject } from '../rig/rig.ts';
import { RaymondRig } from '../fixtures/raymond/rig.ts';

const DONE = { 'DONE.md': '<result>done</result>' };

/** The number of attempts of a step. */
function attempts({ steps }: RunObject, step: string): number | undefined {
  return steps[step]?.attempt;
}

describe('an answer without a valid transition', () => {
  test.each<{ problem: string; says: string; message: string }>([
    { problem: 'has no tag', says: 'I am done.', message: 'the answer has no transition tag' },
    {
      problem: 'has a tag without its end',
      says: 'So: <goto>DONE.md',
      message: 'the answer has no transition tag; <goto> has no </goto>',
    },
    {
      problem: 'has two tags',
      says: '<goto>DONE.md</goto> <result>x</result>',
      message: 'the answer has 2 transition tags (goto, result), but must have one',
    },
    {
      problem: 'names a state that does not exist',
      says: '<goto>DOON.md</goto>',
      message: '<goto>: there is no state "DOON.md"; did you mean DONE.md?',
    },
    {
      problem: 'names a path',
      says: '<goto>../flow/DONE.md</goto>',
      message: '<goto>: "../flow/DONE.md" is a path; write the name of the state without its folder',
    },
    { problem: 'names nothing', says: '<goto> </goto>', message: '<goto>: it does not name a state' },
    { problem: 'names the folder', says: '<goto>..</goto>', message: '<goto>: ".." is not a state' },
    {
      problem: 'lacks an attribute',
      says: '<call>DONE.md</call>',
      message: '<call> has no return="…", which names the state to continue at',
    },
    {
      problem: 'has an attribute twice',
      says: '<call return="DONE.md" return="DONE.md">DONE.md</call>',
      message: '<call> has the attribute return twice',
    },
  ])('$problem: is rejected with a reminder in the same session, and the third one fails the agent', async (row) => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': 'Begin.', ...DONE });
    ray.answers({ to: '', says: row.says });
    const { code, stdout } = await ray.run('flow');
    expect(code).toBe(1);
    expect(stdout).toContain('failed: main.1.START (protocol_error, attempt 3)');
    const status = await ray.rig.status('r');
    expect(status.status).toBe('failed');
    expect(status.steps['main.1.START']).toMatchObject({ error: { type: 'protocol_error', message: row.message } });
    expect(ray.turns().map(({ session }) => session)).toEqual(['fresh', 'resume main.1.START', 'resume main.1.START']);
    expect(ray.prompt('main.1.START')).toMatch(`Your last answer could not be followed: ${row.message}.\n`);
  });

  test('the reminder lists exactly the allowed transitions, and a valid answer continues', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': `---
allowed_tags: [goto, call, result]
allowed_targets:
  goto: [DONE.md, OTHER.md]
  call:
    - { child: OTHER.md, return: DONE.md }
---
Begin.`,
      'OTHER.md': '<result>other</result>',
      ...DONE,
    });
    ray.answers({ to: 'Begin', says: '<reset>DONE.md</reset>' }, { to: 'could not be', says: '<goto>DONE.md</goto>' });
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    expect(ray.prompt('main.1.START')).toBe(`Your last answer could not be followed: <reset> is not allowed here.

End your answer with exactly one of these tags, exactly as they are written here:

<goto>DONE.md</goto>
<goto>OTHER.md</goto>
<call return="DONE.md">OTHER.md</call>
<result>…</result>

… is whatever you have to say.`);
    expect(attempts(await ray.rig.status('r'), 'main.1.START')).toBe(2);
  });

  test('`retries` sets the number of reminders', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': '---\nretries: 0\n---\nBegin.' });
    ray.answers({ to: '', says: 'nothing' });
    expect(await ray.run('flow')).toMatchObject({ code: 1 });
    expect(ray.turns()).toHaveLength(1);
  });

  test('meow resume tries again, with the same number of reminders', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': 'Begin.' });
    ray.answers({ to: '', says: 'nothing', times: 5 }, { to: '', says: '<result>well</result>' });
    expect(await ray.run('flow')).toMatchObject({ code: 1 });
    expect(ray.turns()).toHaveLength(3);
    expect(await ray.rig.meow('resume', 'r')).toMatchObject({ code: 0 });
    expect(ray.turns()).toHaveLength(6);
  });

  test('a script without a valid transition gets no reminder', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.sh': 'echo once >> ran; echo "what now?"' });
    const { code, stdout } = await ray.run('flow');
    expect(code).toBe(1);
    expect(stdout).toContain('the output has no transition tag');
    expect(ray.rig.read('ran')).toBe('once\n');
    expect((await ray.rig.status('r')).steps['main.1.START']).toMatchObject({ error: { output: 'what now?' } });
  });
});

describe('a policy', () => {
  const LISTED = `---
allowed_transitions:
  - { tag: goto, target: DONE.md }
  - { tag: result, payload: "YES" }
  - { tag: fork, target: OTHER.md, next: DONE.md }
---
Begin.`;
  const BOTH = `---
allowed_tags: [goto]
allowed_transitions:
  - { tag: goto, target: DONE.md }
  - { tag: goto, target: OTHER.md }
  - { tag: goto, target: START.md }
  - { tag: result }
allowed_targets:
  goto: [OTHER.md, START.md]
---
Begin.`;

  test.each<{ form: string; start: string; says: string; follows: boolean }>([
    { form: 'listed', start: LISTED, says: '<goto>DONE</goto>', follows: true },
    { form: 'listed', start: LISTED, says: '<goto>OTHER.md</goto>', follows: false },
    { form: 'listed', start: LISTED, says: '<result>YES</result>', follows: true },
    { form: 'listed', start: LISTED, says: '<result>NO</result>', follows: false },
    { form: 'listed', start: LISTED, says: '<fork next="DONE.md">OTHER.md</fork>', follows: true },
    { form: 'listed', start: LISTED, says: '<fork next="OTHER.md">OTHER.md</fork>', follows: false },
    {
      form: 'listed',
      start: LISTED,
      says: '<fork next="DONE.md">OTHER.md</fork><fork next="DONE.md">DONE.md</fork>',
      follows: false,
    },
    { form: 'of both forms', start: BOTH, says: '<goto>OTHER.md</goto>', follows: true },
    { form: 'of both forms', start: BOTH, says: '<goto>DONE.md</goto>', follows: false },
    { form: 'of both forms', start: BOTH, says: '<result>x</result>', follows: false },
  ])('$form: $says follows: $follows', async ({ start, says, follows }) => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': start, 'OTHER.md': '<result>other</result>', ...DONE });
    ray.answers({ to: 'Begin', says }, { to: 'could not be followed', says: 'no' });
    expect((await ray.run('flow')).code).toBe(follows ? 0 : 1);
    expect(ray.turns().filter(({ step }) => step === 'main.1.START')).toHaveLength(follows ? 1 : 3);
  });

  test('a single fully specified transition need not be written', async () => {
    await using ray = await RaymondRig.setup();
    const only = (transition: string): string => `---\nallowed_transitions:\n  - { ${transition} }\n---\nSay nothing.`;
    ray.folder('flow', {
      'START.md': only('tag: goto, target: CALL.md'),
      'CALL.md': only('tag: call, target: LOOK.md, return: FORK.md, input: "by {{state}}"'),
      'LOOK.md': only('tag: result, payload: "found"'),
      'FORK.md': `${only('tag: fork, target: WORKER.md, next: LAST.md')} {{result}}`,
      'WORKER.md': only('tag: result, payload: "worked"'),
      'LAST.md': only('tag: reset, target: END.md'),
      'END.md': only('tag: result, payload: "the end"'),
    });
    ray.answers({ to: 'Say nothing', says: 'All right.' });
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    expect(
      ray
        .turns()
        .map(({ step, session }) => `${step} ${session}`)
        .toSorted(),
    ).toEqual(
      [
        'main.1.START fresh',
        'main.2.CALL resume main.1.START',
        'main.3.LOOK fork main.1.START',
        'main.4.FORK resume main.1.START',
        'main.5.LAST resume main.1.START',
        'main.6.END fresh',
        'main_worker1.1.WORKER fresh',
      ].toSorted(),
    );
    expect(ray.prompt('main.4.FORK')).toBe('Say nothing. found');
  });

  test('a transition with an open part must be written', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', { 'START.md': '---\nallowed_transitions:\n  - { tag: result }\n---\nBegin.' });
    ray.answers({ to: '', says: 'nothing' });
    expect(await ray.run('flow')).toMatchObject({ code: 1 });
  });

  test('force_implicit applies whatever the answer says', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': '---\nforce_implicit: true\nallowed_transitions:\n  - { tag: goto, target: DONE.md }\n---\nBegin.',
      'OTHER.md': '<result>other</result>',
      ...DONE,
    });
    ray.answers({ to: 'Begin', says: '<goto>OTHER.md</goto> <result>x</result>' });
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    expect(ray.turns().map(({ step }) => step)).toEqual(['main.1.START', 'main.2.DONE']);
  });
});

describe('visits', () => {
  test('the visit after the last allowed one goes to `then`, in the session of the transition', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': '<goto>LOOP.md</goto>',
      'LOOP.md': '---\nmax_visits: 3\nthen: COMMIT.md\n---\n{{visit}} <goto input="again">LOOP.md</goto>',
      'COMMIT.md': '<result>{{input}}</result>',
    });
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    expect(ray.turns().map(({ step, session }) => `${step} ${session}`)).toEqual([
      'main.1.START fresh',
      'main.2.LOOP resume main.1.START',
      'main.3.LOOP resume main.1.START',
      'main.4.LOOP resume main.1.START',
      'main.5.COMMIT resume main.1.START',
    ]);
    expect(ray.prompt('main.4.LOOP')).toContain('3 ');
    expect(ray.prompt('main.5.COMMIT')).toBe('<result>again</result>');
  });

  test('`then` counts as a visit of the state that it names', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': '<goto>REVIEW.md</goto>',
      'REVIEW.md': '---\nmax_visits: 2\nthen: FIX.md\n---\n<goto>FIX.md</goto>',
      'FIX.md': '---\nmax_visits: 3\nthen: LAST.md\n---\n<goto>REVIEW.md</goto>',
      'LAST.md': '<result>end</result>',
    });
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    expect(ray.turns().map(({ step }) => step.replace(/^main\.\d+\./, ''))).toEqual([
      'START',
      'REVIEW',
      'FIX',
      'REVIEW',
      'FIX',
      'FIX',
      'LAST',
    ]);
  });

  test('are counted for each agent separately', async () => {
    await using ray = await RaymondRig.setup();
    ray.folder('flow', {
      'START.md': '<fork next="LOOP.md">LOOP.md</fork>',
      'LOOP.md': '---\nmax_visits: 2\nthen: LAST.md\n---\n<goto>LOOP.md</goto>',
      'LAST.md': '<result>end</result>',
    });
    expect(await ray.run('flow')).toMatchObject({ code: 0 });
    expect(
      ray
        .turns()
        .map(({ step }) => step)
        .filter((step) => step.endsWith('.LOOP'))
        .toSorted(),
    ).toEqual(['main.2.LOOP', 'main.3.LOOP', 'main_loop1.1.LOOP', 'main_loop1.2.LOOP']);
  });
});
