// Permission requests of ACP agents, and who answers them.

import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';

import type { AcpProfile } from '../../src/ir/adapter.ts';
import type { Dialog, Outcome } from '../../src/ir/effect.ts';
import { AcpRig, adapterWith } from '../fixtures/acp/rig.ts';
import { failedWith, SUCCESS, TIME_UP } from './agent-rig.ts';

let rig: AcpRig;
afterEach(() => rig.close());

async function asking(permission: AcpProfile['permission']): Promise<void> {
  rig = new AcpRig({ adapter: adapterWith({ permission }) });
  await rig.spawned('worker');
}

const resultOf = (outcome: Outcome): unknown => (outcome.kind === 'success' ? outcome.outputs['result'] : outcome);
const ASKS = [{ ask: 'Run rm', kind: 'execute', rawInput: { command: 'rm -r .' } }];

describe('the rule of its adapter', () => {
  const dialogs = () => [...rig.notes.values()].flat().filter((progress) => 'dialog' in progress);

  test.each([
    ['allow', 'is allowed, this once', 'yes'],
    ['deny', 'is denied', 'no'],
  ] as const)('%s: an agent %s, and nobody is asked', async (rule, _, option) => {
    await asking(rule);
    expect(resultOf(await rig.start(rig.prompting('worker', ASKS)))).toBe(`outcome ${option};`);
    expect(dialogs()).toEqual([]);
  });

  test('always allows an agent to talk to its run, without asking', async () => {
    await asking('ask');
    const own = [{ ask: 'mcp__meow__done', kind: 'other' }];
    expect(resultOf(await rig.start(rig.prompting('worker', own)))).toBe('outcome yes;');
    expect(dialogs()).toEqual([]);
  });

  test.each([
    { ask: 'mcp__meow__done', kind: 'execute' },
    { ask: 'mcp__meow__done; ls', kind: 'other' },
  ])('allows nothing else under that name: %j', async (act) => {
    await asking('deny');
    expect(resultOf(await rig.start(rig.prompting('worker', [act])))).toBe('outcome no;');
  });

  test('edits: allows changes of files in the folder of the agent', async () => {
    await asking('edits');
    const edit = [{ ask: 'Edit', kind: 'edit', locations: [{ path: 'src/a.ts' }, { path: join(rig.folder, 'b.ts') }] }];
    expect(resultOf(await rig.start(rig.prompting('worker', edit)))).toBe('outcome yes;');
    expect(dialogs()).toEqual([]);
  });

  test.each([
    { ask: 'Run rm', kind: 'execute', locations: [{ path: 'a' }] },
    { ask: 'Edit', kind: 'edit' },
    { ask: 'Edit', kind: 'edit', locations: [{ path: 'a' }, { path: '../b' }] },
    { ask: 'Edit', kind: 'edit', locations: [{ path: '/etc/hosts' }] },
  ])('edits: a person is asked about anything else: %j', async (act) => {
    await asking('edits');
    void rig.start(rig.prompting('worker', [act], { id: 'task#1' }));
    expect(await rig.dialog('task#1')).toMatchObject({ name: 'permission' });
  });

  test('allows nothing if the agent offers no way to allow it', async () => {
    await asking('allow');
    const acts = [{ ask: 'Run rm', options: [{ optionId: 'x', name: 'No', kind: 'reject_once' }] }];
    expect(await rig.start(rig.prompting('worker', acts))).toMatchObject(failedWith('exit-nonzero'));
  });
});

describe('a person', () => {
  const decide = (id: string, dialog: Dialog, approved: boolean, answer: string | null = null): void =>
    rig.driver.decide?.(id, { dialog, approved, answer });

  test('sees what the agent wants to do, and the possible answers', async () => {
    await asking('ask');
    void rig.start(rig.prompting('worker', ASKS, { id: 'task#1' }));
    expect(await rig.dialog('task#1')).toEqual({
      name: 'permission',
      text: [
        'Run rm',
        'kind: execute',
        'input: {"command":"rm -r ."}',
        'options: Always (yes-always), Allow (yes), Reject (no)',
        'request: 1',
      ].join('\n'),
    });
  });

  test('sees a long input shortened', async () => {
    await asking('ask');
    void rig.start(rig.prompting('worker', [{ ask: 'Write', rawInput: 'x'.repeat(10_000) }], { id: 'task#1' }));
    const { text } = await rig.dialog('task#1');
    expect(text.length).toBeLessThan(3_000);
    expect(text).toContain('request: 1');
  });

  test.each([
    [true, null, 'yes'],
    [false, null, 'no'],
    [true, 'yes-always', 'yes-always'],
    [true, ' always\n', 'yes-always'],
    [false, 'whatever', 'no'],
  ])('who says %s and %j chooses %s', async (approved, answer, option) => {
    await asking('ask');
    const outcome = rig.start(rig.prompting('worker', ASKS, { id: 'task#1' }));
    decide('task#1', await rig.dialog('task#1'), approved, answer);
    expect(resultOf(await outcome)).toBe(`outcome ${option};`);
    expect(rig.notes.get('task#1')?.at(-1)).toEqual({ dialog: null });
  });

  test('is asked one question at a time, and answers that question', async () => {
    await asking('ask');
    const outcome = rig.start(rig.prompting('worker', [...ASKS, ...ASKS], { id: 'task#1' }));
    const first = await rig.dialog('task#1');
    decide('task#1', first, true);
    const second = await rig.noted('task#1', ({ dialog }) => (dialog ?? null) !== null && dialog?.text !== first.text);
    // A decision may arrive twice.
    decide('task#1', first, true);
    decide('task#1', second.dialog ?? first, false);
    expect(resultOf(await outcome)).toBe('outcome yes;outcome no;');
    const dialogs = rig.notes.get('task#1')?.flatMap(({ dialog }) => (dialog === undefined ? [] : [dialog]));
    expect(dialogs).toEqual([first, null, second.dialog, null]);
  });

  test('is no longer asked when the work is cancelled', async () => {
    await asking('ask');
    const outcome = rig.start(rig.prompting('worker', ASKS, { id: 'task#1' }));
    await rig.dialog('task#1');
    rig.driver.stop('task#1', TIME_UP);
    expect(await outcome).toMatchObject(failedWith('stopped'));
    await rig.says('worker', 'outcome cancelled');
    expect(rig.received('session/cancel')).toHaveLength(1);
  });

  test('is asked during the next prompt if the previous one left a question open', async () => {
    await asking('ask');
    const forgotten = rig.prompting('worker', ASKS, { mode: 'fire-forget' });
    expect(await rig.start(forgotten)).toMatchObject(SUCCESS);
    const outcome = rig.start(rig.prompting('worker', [{ say: 'next' }], { id: 'task#1' }));
    decide('task#1', await rig.dialog('task#1'), true);
    expect(resultOf(await outcome)).toBe('next');
    await rig.says('worker', 'outcome yes;');
  });
});
