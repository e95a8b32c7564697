import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';

import { present } from '../../base/errors.ts';
import { hasErrors } from '../../base/source.ts';
import { checkProgram } from '../../ir/check.ts';
import type { AgentRequest, Inspection, Validator } from '../../ir/conductor.ts';
import { conductorOf, DEFAULT_LIMITS, type Program } from '../../ir/program.ts';
import { compileConductor, type CompiledConductor } from './compile.ts';
import { DEFAULT_CONDUCTOR } from './config.ts';
import type { ConductorInput } from './syntax.ts';
import { attempts } from '../../../test/rig/sample.ts';

const PROMPTS: Readonly<Record<string, string>> = {
  'task.do.v1': '---\nprompt_id: task.do\nversion: 1\nrole: task\n---\nDo it.\n',
  './plain.md': 'Do {{diff}} in {{worktree}}, \r\nas {{{{always}}.\n\n',
};

const INPUT: Omit<ConductorInput, 'source'> = {
  config: DEFAULT_CONDUCTOR,
  adapters: {
    forced: null,
    fallback: 'sim',
    meant: (name) => (name === 'alias' ? 'real' : name),
    refusal: () => null,
    canChoose: () => true,
  },
  prompts: (id) => {
    const text = PROMPTS[id];
    return text === undefined ? null : { path: `p/${id}`, text };
  },
  validators: (id) => (id === 'tests' ? { command: 'make test', from: 'Makefile' } : null),
  enter: () => null,
  artifactsDirDefault: '.meow/run/',
};

function compileText(text: string, more: Partial<ConductorInput> = {}): CompiledConductor {
  return compileConductor({ ...INPUT, source: { file: 'w.yaml', text }, ...more });
}

interface Written {
  readonly steps: readonly object[];
  readonly [key: string]: unknown;
}

/** The first step is the one that it begins with. */
function compile(written: Written, more: Partial<ConductorInput> = {}): CompiledConductor {
  const [first] = written.steps as readonly { readonly id?: string }[];
  const around = { workflow_id: 'w', version: 1, description: 'd', entry_step: first?.id };
  return compileText(stringify({ ...around, ...written }), more);
}

const TO_STOP = {
  completed: 'STOP',
  error: 'STOP',
  killed_timeout: 'STOP',
  killed_idle: 'STOP',
  killed_policy: 'STOP',
};
const WORK = { id: 'work', opcode: 'RUN_AGENT', agent: 'alias', prompt: 'task.do.v1', routes: TO_STOP };
const CHECK = { id: 'check', opcode: 'RUN_VALIDATION', run: ['tests'], routes: TO_STOP };

/** What the steps of the block that performs a step are to do, by their kinds. */
function inspectionsOf({ program }: CompiledConductor, block: string): readonly Inspection[] {
  return (program?.blocks[block]?.steps ?? []).flatMap(({ act }) =>
    act.kind === 'effect' && act.effect.kind === 'inspect' ? [act.effect.inspection] : [],
  );
}

function agentOf(compiled: CompiledConductor): AgentRequest {
  for (const each of inspectionsOf(compiled, 'work/body')) if (each.kind === 'prompt') return each.agent;
  throw new Error('nobody is prompted');
}

function validatorsOf(compiled: CompiledConductor): readonly Validator[] {
  const blocks = Object.keys(compiled.program?.blocks ?? {}).filter((name) => name.startsWith('check/body/'));
  return blocks
    .flatMap((name) => inspectionsOf(compiled, name))
    .flatMap((inspection) => (inspection.kind === 'prepare' ? [inspection.validator] : []));
}

function codes({ diagnostics }: Pick<CompiledConductor, 'diagnostics'>): readonly string[] {
  return diagnostics.map(({ code }) => code);
}

describe('what is known of the whole workflow', () => {
  test('is found again in its Program', () => {
    const gate = {
      id: 'ask',
      opcode: 'GATE',
      gate: 'queue_for_review',
      routes: { completed: 'STOP' },
    };
    const steps = [{ ...WORK, routes: { ...TO_STOP, completed: 'ask' } }, gate];
    const compiled = compile({ workflow_id: 'x', description: 'y', steps, defaults: { artifacts_dir: './out//' } });
    expect(compiled.diagnostics).toEqual([]);
    const stored = JSON.parse(JSON.stringify(compiled.program)) as Program;
    expect(conductorOf(stored)).toEqual({
      workflowId: 'x',
      description: 'y',
      artifactsDir: 'out',
      mutates: true,
      gates: { ask: 'queue_for_review' },
    });
  });

  test('is nothing for a Program of another language', () => {
    const { program } = compile({ steps: [CHECK] });
    expect(program === null ? undefined : conductorOf({ ...program, attachments: {} })).toBeNull();
  });

  test('is that it changes nothing, where no agent works and nothing is put back', () => {
    const undo = { id: 'undo', opcode: 'ROLLBACK', target: 'pre_run', routes: { completed: 'STOP', error: 'STOP' } };
    const factsOf = (...steps: readonly object[]) => conductorOf(present(compile({ steps }).program, 'no program'));
    expect(factsOf(CHECK)).toMatchObject({ mutates: false, artifactsDir: '.meow/run' });
    expect(factsOf(undo)).toMatchObject({ mutates: true });
  });

  test('takes the limits of the configuration', () => {
    const limits = { ...DEFAULT_LIMITS, stepsMax: 5 };
    expect(compile({ steps: [CHECK] }, { limits }).program?.limits).toEqual(limits);
  });
});

describe('validators', () => {
  test('that a project has a command for are told of, once', () => {
    const { notes } = compile({
      steps: [
        { ...CHECK, routes: { ...TO_STOP, completed: 'again' } },
        { ...CHECK, id: 'again' },
      ],
    });
    expect(notes).toEqual(['validator tests: make test (Makefile)']);
  });

  test('have the time of their own, else of their step, else of the workflow', () => {
    const registered = { command: 'x', cwd: null, artifacts: [], timeoutMs: 7_000 };
    const config = { ...DEFAULT_CONDUCTOR, validators: { slow: registered } };
    const run = ['tests', 'slow', { id: 'slow2', kind: 'script', entrypoint: 'a', timeout: 1 }];
    const times = (defaults: object, step: object): readonly (number | null)[] =>
      validatorsOf(compile({ defaults, steps: [{ ...CHECK, run, ...step }] }, { config })).map(
        ({ timeoutMs }) => timeoutMs,
      );
    expect(times({}, {})).toEqual([null, 7_000, 1_000]);
    expect(times({ limits: { timeout: '2m' } }, {})).toEqual([120_000, 7_000, 1_000]);
    expect(times({ limits: { timeout: '2m' } }, { limits: { timeout: '3m' } })).toEqual([180_000, 7_000, 1_000]);
    expect(times({ limits: { timeout: '2m' } }, { limits: { timeout: 0 } })).toEqual([null, 7_000, 1_000]);
  });

  test('of a configuration stand before what the project has', () => {
    const tests = { command: 'npm test', cwd: null, artifacts: [], timeoutMs: null };
    const compiled = compile({ steps: [CHECK] }, { config: { ...DEFAULT_CONDUCTOR, validators: { tests } } });
    expect(validatorsOf(compiled)).toEqual([{ kind: 'builtin', id: 'tests', ...tests }]);
    expect(compiled.notes).toEqual([]);
  });

  test('of kind builtin say what is otherwise here', () => {
    const run = [{ id: 'tests', kind: 'builtin', cwd: 'app', artifacts: ['*.xml'], timeout: '1m' }];
    expect(validatorsOf(compile({ steps: [{ ...CHECK, run }] }))).toEqual([
      { kind: 'builtin', id: 'tests', command: 'make test', cwd: 'app', artifacts: ['*.xml'], timeoutMs: 60_000 },
    ]);
  });

  test('with names that every object has are not there', () => {
    expect(codes(compile({ steps: [{ ...CHECK, run: ['constructor', '__proto__'] }] }))).toEqual([
      'unknown-validator',
      'unknown-validator',
    ]);
  });
});

describe('agents', () => {
  test('are adapters, which may have other names', () => {
    expect(agentOf(compile({ steps: [WORK] })).adapter).toBe('real');
  });

  test('are all the same if the caller overrides them', () => {
    const adapters = { ...INPUT.adapters, forced: 'sim', refusal: (name: string) => (name === 'sim' ? null : REFUSED) };
    expect(agentOf(compile({ steps: [WORK] }, { adapters })).adapter).toBe('sim');
  });

  const REFUSED = { message: 'there is no such adapter', hint: 'Use another.' };

  test('that cannot work are told of where they are named', () => {
    const adapters = { ...INPUT.adapters, refusal: () => REFUSED };
    expect(compile({ steps: [WORK] }, { adapters }).diagnostics).toMatchObject([
      { code: 'adapter-unavailable', span: { line: 8, column: 12 } },
    ]);
  });

  test('may be silent for ten minutes, unless it is said otherwise', () => {
    const idle = (limits: object): number | null => agentOf(compile({ steps: [{ ...WORK, limits }] })).limits.idleMs;
    expect([idle({}), idle({ idle_timeout: 0 }), idle({ idle_timeout: '30s' })]).toEqual([600_000, null, 30_000]);
  });
});

describe('prompts', () => {
  test('are told without their front matter and the lines around them', () => {
    expect(agentOf(compile({ steps: [WORK] })).prompt).toEqual({
      id: 'task.do.v1',
      version: 1,
      path: 'p/task.do.v1',
      text: 'Do it.',
      inputs: [],
    });
  });

  test('by their paths need none, and what steps give them is of any type', () => {
    const compiled = compile({ steps: [{ ...WORK, prompt: './plain.md', inputs: ['diff', 'transcript'] }] });
    expect(compiled.diagnostics).toEqual([]);
    expect(agentOf(compiled).prompt).toMatchObject({
      version: null,
      text: 'Do {{diff}} in {{worktree}}, \r\nas {{{{always}}.',
      inputs: [{ name: 'diff', type: 'any', required: true }],
    });
  });

  test('are looked for once', () => {
    const asked: string[] = [];
    const prompts: ConductorInput['prompts'] = (id) => {
      asked.push(id);
      return null;
    };
    compile(
      {
        steps: [
          { ...WORK, routes: { ...TO_STOP, completed: 'two' } },
          { ...WORK, id: 'two' },
        ],
      },
      { prompts },
    );
    expect(asked).toEqual(['task.do.v1']);
  });

  test('with white space are the prompt itself', () => {
    const prompt = 'Do this:\nread {{diff}} in {{worktree}}.\n';
    const compiled = compile({ steps: [{ ...WORK, prompt, inputs: ['diff'] }] });
    expect(codes(compiled)).toEqual([]);
    expect(agentOf(compiled).prompt).toMatchObject({
      id: 'inline',
      version: null,
      path: 'w.yaml',
      text: prompt.trimEnd(),
      inputs: [{ name: 'diff' }],
    });
    expect(codes(compile({ steps: [{ ...WORK, prompt: 'Do {{nothing}}.' }] }))).toEqual(['unknown-variable']);
  });

  test.each(['task.do', 'task.do.v', 'task.do.vx', 'v1', '.v1', 'task..do.v1', 'task.do.v1.x', 'do.md'])(
    'are not named %j',
    (prompt) => {
      const none: ConductorInput['prompts'] = () => {
        throw new Error('nothing is looked for');
      };
      expect(codes(compile({ steps: [{ ...WORK, prompt }] }, { prompts: none }))).toEqual(['invalid-prompt-id']);
    },
  );
});

describe('ids', () => {
  test.each(['a', 'A-b_9', 'constructor', 'toString'])('%s is one', (id) => {
    const compiled = compile({ steps: [{ ...CHECK, id }] });
    expect(compiled.diagnostics).toEqual([]);
    expect(Object.hasOwn(compiled.program?.blocks ?? {}, id)).toBe(true);
  });

  test.each(['9a', 'a.b', 'a b', '-a', '_a', 'é', '__proto__'])('%s is none', (id) => {
    expect(codes(compile({ steps: [{ ...CHECK, id }] }))).toContain('invalid-id');
  });
});

describe('any text', () => {
  const fine = (text: string): void => {
    const compiled = compileText(text);
    expect(compiled.program === null).toBe(hasErrors(compiled.diagnostics));
    if (compiled.program !== null) expect(checkProgram(compiled.program)).toEqual([]);
  };

  test('is read without an accident', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 200 }), fine), { numRuns: attempts(150) });
  });

  test('of words that workflows have is read without an accident', () => {
    const keys =
      'workflow_id version description entry_step steps defaults id opcode routes run RUN_AGENT EVALUATE STOP a 1';
    const marks = [
      ': ',
      '\n',
      '\n  - ',
      '\n    ',
      '- ',
      '[',
      ']',
      '{',
      '}',
      ', ',
      '"',
      "'",
      '&x ',
      '*x ',
      '!!map ',
      '|\n',
    ];
    const word = fc.constantFrom(...keys.split(' '), ...marks, '? ', '<<', '${', '{{', '#', '\t');
    fc.assert(
      fc.property(
        fc.array(word, { maxLength: 60 }).map((words) => words.join('')),
        fine,
      ),
      { numRuns: attempts(200) },
    );
  });

  test('of the shape of a workflow is read without an accident', () => {
    const id = fc.constantFrom('a', 'b', 'c', 'STOP', '9', '');
    const value = fc.oneof(
      { weight: 6, arbitrary: id },
      fc.constantFrom<unknown>(
        null,
        0,
        1,
        true,
        [],
        {},
        ['a'],
        ['tests'],
        'pre_run',
        'requires_approval',
        '5m',
        './plain.md',
      ),
      fc.constantFrom<unknown>('task.do.v1', { command: 'x' }, { to: 'a', witness: { command: 'x' } }, [{ id: 'x' }]),
    );
    const keys =
      'agent model prompt inputs policy limits witness run evaluator max_partial allowed_next_steps gate reason approvers ' +
      'timeout target verdict allow_unreachable x';
    const outcomes =
      'completed error killed_timeout success partial blocked unsafe needs_human gate_approved gate_rejected ' +
      'gate_timed_out toString';
    const key = fc.constantFrom(...keys.split(' '));
    const route = fc.constantFrom(...outcomes.split(' '));
    const opcode = fc.constantFrom('RUN_AGENT', 'RUN_VALIDATION', 'EVALUATE', 'GATE', 'ROLLBACK', 'STOP', 'NONE');
    const step = fc
      .tuple(id, opcode, fc.dictionary(key, value, { maxKeys: 5 }), fc.dictionary(route, value, { maxKeys: 6 }))
      .map(([name, kind, keys, routes]) => ({ id: name, opcode: kind, ...keys, routes }));
    const workflow = fc
      .tuple(id, fc.array(step, { maxLength: 4 }), fc.dictionary(key, value, { maxKeys: 2 }))
      .map(([entry, steps, defaults]) =>
        stringify({ workflow_id: 'w', version: 1, description: 'd', entry_step: entry, defaults, steps }),
      );
    fc.assert(fc.property(workflow, fine), { numRuns: attempts(200) });
  });

  test('that is a little off is read without an accident', () => {
    const good = stringify({
      workflow_id: 'w',
      version: 1,
      description: 'd',
      entry_step: 'work',
      steps: [{ ...WORK, routes: { ...TO_STOP, completed: 'check' } }, CHECK],
    });
    const edit = fc.tuple(fc.nat(good.length), fc.nat(12), fc.string({ maxLength: 4 }));
    const edited = edit.map(([at, length, put]) => good.slice(0, at) + put + good.slice(at + length));
    fc.assert(fc.property(edited, fine), { numRuns: attempts(150) });
  });
});

test('a step with an opcode that is none is still there for those that lead to it, and for those with its id', () => {
  const odd = { id: 'odd', opcode: 'RUN_AGNET', routes: { completed: 'end' } };
  const end = { id: 'end', opcode: 'STOP' };
  expect(codes(compile({ steps: [odd, end] }))).toEqual(['unknown-opcode']);
  expect(codes(compile({ steps: [odd, { ...end, id: 'odd' }] }))).toEqual(['unknown-opcode', 'duplicate-id']);
});
