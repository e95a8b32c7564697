import { describe, expect, test } from 'vitest';

import { err, ok } from '../../base/errors.ts';
import type { Json } from '../../base/json.ts';
import type { PromptInput, PromptText } from '../../ir/conductor.ts';
import type { Visit } from './context.ts';
import { fillPrompt, type InputSources, inputValues } from './inputs.ts';

function visit(id: string, more: Partial<Visit>): Visit {
  const [step = '', number] = id.split('#');
  const plain = { kind: 'work', outcome: 'completed', failure: null, outputs: {}, startedAt: 0, endedAt: 1 } as const;
  return { id, step, visit: Number(number), ...plain, ...more };
}

const SOURCES: InputSources = {
  runId: 'wf-1',
  runDir: '/run',
  worktree: '/tree',
  step: 'fix',
  hints: { componentKind: 'cli', evalProfile: 'smoke' },
  history: [],
  diff: () => Promise.resolve(ok('the diff')),
  report: (path) => ok({ from: path }),
  transcript: (path) => ok(`transcript of ${path}`),
  kept: ({ file }) => ok(`contents of ${file}`),
};

async function filled(
  text: string,
  more: Partial<InputSources> & { asked?: readonly string[]; inputs?: readonly PromptInput[] } = {},
) {
  const { asked = [], inputs = [], ...sources } = more;
  const prompt: PromptText = { id: 'task.x.v1', version: 1, path: 'x.md', text, inputs };
  return fillPrompt(prompt, asked, await inputValues(prompt, asked, { ...SOURCES, ...sources }));
}

const history = [
  visit('plan#1', { outputs: { result: 'old' } }),
  visit('plan#2', {
    outputs: { result: 'new', nested: { deep: [1] }, big: { $file: 'steps/a/1/outputs/big', bytes: 9 } },
  }),
  visit('implement#1', { outputs: { artifacts: [{ role: 'runner_transcript', path: 'artifacts/t.log' }] } }),
  visit('check#1', { kind: 'validate', outputs: { validators: [{ id: 'tests' }], harness_report: 'r.json' } }),
  visit('judge#1', { kind: 'evaluate', outputs: { fix_instructions: { do: 'it' } } }),
];

describe('what a prompt can be given', () => {
  test.each<[string, string]>([
    ['run_id', 'wf-1'],
    ['run_dir', '/run'],
    ['worktree', '/tree'],
    ['step_id', 'fix'],
    ['diff', 'the diff'],
    ['component_kind', 'cli'],
    ['eval_profile', 'smoke'],
    ['harness_report', '{"from":"r.json"}'],
    ['fix_instructions', '{"do":"it"}'],
    ['transcript', 'transcript of artifacts/t.log'],
    ['plan.result', 'new'],
    ['plan.nested', '{"deep":[1]}'],
    ['plan.nested.deep', '[1]'],
    ['plan.big', 'contents of steps/a/1/outputs/big'],
  ])('%s', async (name, text) => {
    expect(await filled(`[{{${name}}}] [{{ ${name} }}]`, { history })).toEqual(ok(`[${text}] [${text}]\n`));
  });

  test('validation is what validators came to', async () => {
    const text = await filled('{{validation}}', { history });
    expect(text.ok && (JSON.parse(text.value) as Json)).toMatchObject([
      { visit: 'check#1', validators: [{ id: 'tests' }] },
    ]);
  });
});

describe('a prompt', () => {
  test('is filled in one pass: placeholders in values are not expanded', async () => {
    const diff = () => Promise.resolve(ok('{{run_id}} $& {{{{'));
    expect(await filled('{{diff}}|{{{{run_id}}', { diff })).toEqual(ok('{{run_id}} $& {{{{|{{run_id}}\n'));
  });

  test('is followed by what its step asks for and it does not place', async () => {
    const text = await filled('Do {{plan.result}}.', { history, asked: ['plan.result', 'diff', 'component_kind'] });
    expect(text).toEqual(ok('Do new.\n\n## diff\n\nthe diff\n\n## component_kind\n\ncli\n'));
  });

  test.each<[string, string]>([
    ['{{harness_report}}', 'no validation has left a harness report'],
    ['{{validation}}', 'nothing has been validated yet'],
    ['{{transcript}}', 'no agent has worked yet'],
    ['{{plan.result}}', 'plan has not been visited before'],
    ['{{}}', 'there is no such input'],
    ['{{toString}}', 'there is no such input'],
  ])('%s must have a value', async (text, why) => {
    const result = await filled(text);
    expect(result.ok ? '' : result.error).toContain(why);
  });

  test.each(['plan.missing', 'plan.__proto__', 'plan.result.length'])('%s is no output', async (name) => {
    const result = await filled(`{{${name}}}`, { history });
    expect(result.ok ? '' : result.error).toContain('plan#2 has no output');
  });

  test('does without what it calls optional, and asks for what it declares', async () => {
    const input = { name: 'diff', type: 'string', required: false } as const;
    const diff = () => Promise.resolve(err('there is none'));
    expect(await filled('[{{diff}}]', { diff, inputs: [input] })).toEqual(ok('[]\n'));
    expect((await filled('x', { diff, inputs: [{ ...input, required: true }] })).ok).toBe(false);
  });
});
