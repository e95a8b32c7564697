import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hasErrors } from '../../base/diagnostic.ts';
import type { CompiledRaymond, RaymondInput } from './compile.ts';
import { compileRaymond, validateRaymond } from './compile.ts';
import type { FolderSource, Found, RaymondFile, RaymondSource } from './source.ts';

const ADAPTERS: RaymondInput['adapters'] = {
  forced: null,
  fallback: 'sim',
  refusal: () => null,
  canFork: () => true,
  canChoose: () => true,
};

interface Written {
  readonly text: string | null;
  readonly isExecutable?: boolean;
  readonly path?: string;
  readonly leadsOut?: boolean;
}

function folder(files: Readonly<Record<string, string | Written>>, more: Partial<FolderSource> = {}): FolderSource {
  const read = Object.entries(files).map(([name, written]): RaymondFile => {
    const plain = { isExecutable: false, path: `/w/${name}`, leadsOut: false };
    return { name, file: `w/${name}`, ...plain, ...(typeof written === 'string' ? { text: written } : written) };
  });
  return { kind: 'folder', key: 'w', name: 'w', files: read, start: null, ...more };
}

function single(text: string): RaymondSource {
  return { kind: 'single', key: 'w', name: 'w.yaml', text, start: null };
}

function compile(source: RaymondSource, more: Partial<RaymondInput> = {}): CompiledRaymond {
  return compileRaymond({ source, given: [], adapters: ADAPTERS, find: () => null, ...more });
}

/** `w/START.md:3:1 missing-target` */
function said({ diagnostics }: Pick<CompiledRaymond, 'diagnostics'>): readonly string[] {
  return diagnostics.map(({ span, code }) => `${span.file}:${String(span.line)}:${String(span.column)} ${code}`);
}

const END = '<result>x</result>';

describe('the state that a workflow begins with', () => {
  const files = { 'START.md': END, 'REVIEW.md': END, 'CHECK.sh': 'echo' };

  test.each([
    [null, 'START'],
    ['REVIEW.md', 'REVIEW'],
    ['REVIEW', 'REVIEW'],
    ['CHECK.sh', 'CHECK'],
  ])('asked for %j it is %s', (start, entry) => {
    expect(compile(folder(files, { start })).program?.entry).toBe(entry);
  });

  test('that is not there is an error', () => {
    expect(said(compile(folder(files, { start: 'REVEIW.md' })))).toEqual(['w:1:1 no-start']);
  });

  test('may be a script', () => {
    expect(compile(folder({ '1_START.sh': 'echo' })).program?.entry).toBe('1_START');
  });
});

describe('names', () => {
  test('of states become ids, each another one', () => {
    const files = {
      'START.md': END,
      'my state.md': END,
      'my_state.sh': '',
      'A.md': END,
      'A.sh': '',
      '.hidden.md': END,
    };
    const { program } = compile(folder(files));
    expect(program?.machines['main']?.states).toEqual({
      'START.md': 'START',
      'my state.md': 'my_state',
      'my_state.sh': 'my_state_2',
      'A.md': 'A_md',
      'A.sh': 'A_sh',
    });
    expect(program?.machines['main']?.spellings['A']).toEqual(['A.md', 'A.sh']);
  });

  test('a program without an extension and a prompt of the same name are two candidates', () => {
    const files = { 'START.md': `<goto>WORK</goto>`, 'WORK.md': END, WORK: { text: null, isExecutable: true } };
    const diagnostics = validateRaymond({ source: folder(files), adapters: ADAPTERS, find: () => null });
    expect(diagnostics.map(({ message }) => message)).toEqual([
      '<goto>: "WORK" may be WORK or WORK.md: write it in full',
    ]);
  });

  test('that every object has are names as any other', () => {
    const { program } = compile(folder({ 'START.md': '<goto>constructor</goto>', 'constructor.md': END }));
    expect(program?.machines['main']?.states['constructor.md']).toBe('constructor');
  });
});

describe('prompts', () => {
  const promptOf = ({ program }: CompiledRaymond, block: string): unknown => {
    const act = program?.blocks[block]?.steps[0]?.act;
    return act?.kind === 'effect' && act.effect.kind === 'turn' ? act.effect.prompt : null;
  };

  test('have neither their front matter nor the lines around them', () => {
    const compiled = compile(
      folder({ 'START.md': `\uFEFF---\r\nmodel: small\r\n---\r\n\r\n\r\nGo.\r\n${END}\r\n\r\n` }),
    );
    expect(compiled.diagnostics).toEqual([]);
    expect(promptOf(compiled, 'START')).toBe(`Go.\r\n${END}`);
  });

  test('have their places in the file, whatever stands before them', () => {
    const compiled = compile(folder({ 'START.md': `\uFEFF---\r\nmodel: small\r\n---\r\n\r\nGo to <goto>X.md</goto>` }));
    expect(said(compiled)).toEqual(['w/START.md:5:7 missing-target']);
  });

  test('are filled in where braces name something', () => {
    const text = '{{input}}{{result}}{{state}}{{a.b}}{{{{x}}{{ y z }}{{.A}}{{{agent_id}}} {{visit}}';
    expect(promptOf(compile(folder({ 'START.md': text })), 'START')).toEqual({
      parts: [
        { path: ['input'], quote: [] },
        { path: ['input'], quote: [] },
        'START',
        { path: ['a', 'b'], quote: [] },
        '{{x}}{{ y z }}{{.A}}{',
        { path: ['@agent_id'], quote: [] },
        '} ',
        { path: ['@visit'], quote: [] },
      ],
    });
  });

  test('in a YAML file have their places in it', () => {
    const text =
      'states:\n  START:\n    prompt: "a <goto>X</goto>\\n b"\n  B:\n    prompt: >-\n      some\n      <goto>Y</goto>\n';
    const diagnostics = validateRaymond({ source: single(text), adapters: ADAPTERS, find: () => null });
    expect(said({ diagnostics }).filter((line) => line.endsWith('missing-target'))).toEqual([
      'w.yaml:3:16 missing-target',
      'w.yaml:7:7 missing-target',
    ]);
  });
});

describe('settings', () => {
  const files = {
    'workflow.yaml': 'model: small\nadapter: one\ntimeout: 600\nidle_timeout: 5m\nretries: 0\n',
    'START.md': `---\nmodel: large\ntimeout: 0\n---\n<goto>B.md</goto>`,
    'B.md': `---\nadapter: two\nidle_timeout: 0\nretries: 5\n---\n${END}`,
  };
  const settingsOf = ({ program }: CompiledRaymond, block: string): unknown => {
    const { parameters = [], steps = [] } = program?.blocks[block] ?? {};
    const [step] = steps;
    const effect = step?.act.kind === 'effect' && step.act.effect.kind === 'turn' ? step.act.effect : null;
    const value = (name: string): unknown => {
      const fallback = parameters.find((each) => each.name === name)?.fallback;
      return fallback?.kind === 'literal' ? fallback.value : null;
    };
    return [value('@model'), value('@adapter'), step?.timeout, effect?.idleMs, step?.repromptsMax, effect?.adapter];
  };
  const hole = { parts: [{ path: ['@adapter'], quote: [] }] };

  test('of a state go over those of its workflow', () => {
    const compiled = compile(folder(files));
    expect(settingsOf(compiled, 'START')).toEqual(['large', 'one', null, 300_000, 0, hole]);
    expect(settingsOf(compiled, 'B')).toEqual(['small', 'two', '600000ms', null, 5, hole]);
    expect(compiled.program?.machines['main']?.adapters).toEqual({ B: 'two' });
  });

  test('the adapter of the command line goes over all of them', () => {
    const compiled = compile(folder(files), { adapters: { ...ADAPTERS, forced: 'sim' } });
    expect(compiled.diagnostics).toEqual([]);
    expect(settingsOf(compiled, 'B')).toEqual(['small', 'sim', '600000ms', null, 5, 'sim']);
    expect(compiled.program?.machines['main']?.adapters).toEqual({});
  });
});

describe('scripts', () => {
  const commandOf = (name: string, written: Written): unknown => {
    const { program } = compile(folder({ 'START.md': END, [name]: written }));
    const step = Object.values(program?.blocks ?? {}).find(({ steps }) => steps[0]?.executor === 'script')?.steps[0];
    return step?.act.kind === 'effect' && step.act.effect.kind === 'command' ? step.act.effect.script : null;
  };
  const bash = 'exec "$(command -v bash || echo sh)"';

  test.each<[string, Written, string]>([
    ['A.sh', { text: '#!/bin/zsh', isExecutable: true }, "exec '/w/A.sh'"],
    ['A.sh', { text: '#!/bin/zsh', isExecutable: false }, `${bash} '/w/A.sh'`],
    ['A.sh', { text: 'echo', isExecutable: true }, `${bash} '/w/A.sh'`],
    ['A.py', { text: '#!/usr/bin/env python3', isExecutable: true }, "exec '/w/A.py'"],
    ['A', { text: null, isExecutable: true, path: "/it's/A" }, "exec '/it'\\''s/A'"],
  ])('%s %j', (name, written, command) => {
    expect(commandOf(name, written)).toBe(command);
  });

  test('what cannot be executed and is no .sh file is no state', () => {
    expect(compile(folder({ 'START.md': END, 'A.py': 'x' })).program?.machines['main']?.states).toEqual({
      'START.md': 'START',
    });
  });
});

describe('other workflows', () => {
  /** `w1` leads to `w2`, and so on. */
  const chain =
    (length: number): RaymondInput['find'] =>
    (from, path): Found | null => {
      const n = Number(path.replace('../w', ''));
      if (!Number.isInteger(n) || n > length) return null;
      const text =
        n === length ? END : `<call-workflow return="START.md">../w${String(n + 1)}</call-workflow> or ${END}`;
      expect(from.key).toBe(n === 1 ? 'w' : `w${String(n - 1)}`);
      return { kind: 'raymond', source: folder({ 'START.md': text }, { key: `w${String(n)}`, name: `w${String(n)}` }) };
    };
  const first = folder({ 'START.md': `<call-workflow return="START.md">../w1</call-workflow> or ${END}` });

  test('may be entered from within each other eight deep, and no deeper', () => {
    const eight = compile(first, { find: chain(8) });
    expect(eight.diagnostics).toEqual([]);
    expect(Object.keys(eight.program?.machines ?? {})).toHaveLength(9);
    const nine = validateRaymond({ source: first, adapters: ADAPTERS, find: chain(9) });
    expect(nine.map(({ message }) => message)).toEqual(['../w9 would be entered through more than 8 workflows']);
  });

  test('are opened once, and may begin in two places', () => {
    const texts = { 'START.md': END, 'B.md': END };
    let opened = 0;
    const find: RaymondInput['find'] = (_from, path) => {
      opened += 1;
      const start = path.endsWith('/B') ? 'B' : null;
      return { kind: 'raymond', source: folder(texts, { key: 'other', name: 'lib/other', start }) };
    };
    const text = ['a/other/B', 'a/other', './a//other']
      .map((path) => `<reset-workflow>${path}</reset-workflow>`)
      .join('');
    const { program } = compile(folder({ 'START.md': text }), { find });
    expect(program?.machines['main']?.workflows).toEqual({ 'a/other/B': 'other-B', 'a/other': 'other-START' });
    expect(Object.keys(program?.machines ?? {})).toEqual(['main', 'other']);
    expect(opened).toBe(2);
  });

  test('may lead back to the first, which is not opened again', () => {
    const source = folder({ 'START.md': `<call-workflow return="START.md">../w</call-workflow> or ${END}` });
    const { program } = compile(source, { find: () => ({ kind: 'raymond', source }) });
    expect(program?.machines['main']?.workflows).toEqual({ '../w': 'START' });
  });

  test('that cannot be read are told of in their own files', () => {
    const broken = folder({ 'START.md': '---\na: [\n---\n' }, { key: 'o', name: 'o' });
    const files = broken.files.map((file) => ({ ...file, file: 'o/START.md' }));
    const compiled = compile(first, { find: () => ({ kind: 'raymond', source: { ...broken, files } }) });
    expect(said(compiled)).toEqual(['o/START.md:2:4 invalid-yaml']);
  });
});

describe('any text', () => {
  const words = [
    '---\n',
    'model: x\n',
    'allowed_tags: [goto]\n',
    'allowed_transitions:\n',
    '- ',
    '{ tag: goto }\n',
    ': ',
    '\n',
  ]
    .concat([
      '  ',
      'max_visits: 2\n',
      'then: START.md\n',
      '<goto>START.md</goto>',
      '<call return="B">',
      '</call>',
      '{{input}}',
    ])
    .concat([
      '{{',
      '&a ',
      '*a ',
      'states:\n',
      '  START:\n',
      '    prompt: |\n',
      '      Go.\n',
      '"',
      "'",
      '[',
      ']',
      '}',
      '#',
    ])
    .concat(['\t', '\0', '\uFEFF', 'é🐝']);
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(fc.constantFrom(...words), { maxLength: 40 }).map((parts) => parts.join('')),
  );

  test('compiles, or is told what is wrong with it', () => {
    fc.assert(
      fc.property(text, text, fc.boolean(), (start, other, isSingle) => {
        const source = isSingle
          ? single(start)
          : folder({ 'START.md': start, 'OTHER.md': other, 'workflow.yaml': other });
        const { program, diagnostics } = compile(source);
        expect(program === null).toBe(hasErrors(diagnostics));
        validateRaymond({ source, adapters: ADAPTERS, find: () => null });
      }),
      { numRuns: 500 },
    );
  });
});
