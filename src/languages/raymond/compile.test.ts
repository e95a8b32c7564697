import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { hasErrors } from '../../base/source.ts';
import { type CompiledRaymond, compileRaymond, type RaymondInput, validateRaymond } from './compile.ts';
import type { FolderSource, Found, RaymondFile, RaymondSource } from './syntax.ts';
import { attempts } from '../../../test/rig/sample.ts';

const ADAPTERS: RaymondInput['adapters'] = {
  forced: null,
  fallback: 'sim',
  refusal: () => null,
  meant: (name) => name,
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

/** Diagnostics of `meow validate`. */
function checked(source: RaymondSource, find: RaymondInput['find'] = () => null): readonly string[] {
  return said({ diagnostics: validateRaymond({ source, adapters: ADAPTERS, find }) });
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
      '<goto>: "WORK" may mean WORK or WORK.md; write the full name',
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

describe('a prompt without a word', () => {
  test.each(['START:\n    prompt:', 'START:\n    prompt: ""', 'START:\n    prompt: "  "'])(
    'is told of in one file: %j',
    (state) => {
      expect(said(compile(single(`states:\n  ${state}\n`)))).toEqual([
        expect.stringMatching(/^w\.yaml:3:\d+ empty-prompt$/),
      ]);
    },
  );

  test('is told of in a folder', () => {
    expect(said(compile(folder({ 'START.md': '' })))).toEqual(['w/START.md:1:1 empty-prompt']);
  });

  test('counts as absent beside a script', () => {
    expect(said(compile(single('states:\n  START:\n    prompt:\n    sh: echo "<result>x</result>"\n')))).toEqual([]);
  });

  test('is told of where a script is meant', () => {
    expect(said(compile(single('states:\n  START:\n    sh:\n')))).toEqual(['w.yaml:2:3 missing-key']);
  });
});

describe('a policy', () => {
  const policy = (...lines: readonly string[]): readonly string[] =>
    checked(folder({ 'START.md': `---\n${lines.join('\n')}\n---\n<print>x</print>`, 'B.md': END })).filter(
      (line) => !/ (?:no-result|unreachable-state)$/.test(line),
    );

  test.each<[readonly string[], readonly string[]]>([
    [['allowed_tags: [goto]', 'allowed_targets: { goto: [] }'], ['3:26']],
    [['allowed_tags: [goto, result]', 'allowed_targets: { goto: [] }'], ['3:26']],
    [['allowed_tags: [goto]', 'allowed_targets: { goto: [] }', 'allowed_transitions: [{ tag: goto }]'], ['3:26']],
    [['allowed_tags: []'], ['2:15']],
    [['allowed_tags: [print]'], ['2:1']],
    [['allowed_transitions: [{ tag: print }]'], ['2:1']],
    [['allowed_tags: [goto]', 'allowed_transitions: [{ tag: result }]'], ['2:1']],
  ])('that allows nothing is told so, once: %j', (lines, places) => {
    expect(policy(...lines)).toEqual(places.map((place) => `w/START.md:${place} empty-policy`));
  });

  test('may leave one tag without a target where it allows all others', () => {
    expect(policy('allowed_targets: { goto: [] }')).toEqual([]);
  });

  test('that allows nothing because it is wrong is told only what is wrong', () => {
    expect(policy('allowed_tags: [gotto]')).toEqual(['w/START.md:2:16 unknown-tag']);
  });

  test.each([
    ['timeout: banana', ['3:39 wrong-type']],
    ['timeout: banana, timeout_next: B', ['3:39 wrong-type']],
    ['timeout_next: B', ['3:30 missing-key']],
    ['timeout: , timeout_next: B', ['3:41 missing-key']],
    ['timeout: 24h, timeout_next: B', []],
    ['timeout: 90', []],
  ])('blames no agent for how it has a question asked: %s', (parts, problems) => {
    expect(policy('allowed_transitions:', `  - { tag: ask, next: START, ${parts} }`)).toEqual(
      problems.map((problem) => `w/START.md:${problem}`),
    );
  });
});

describe('forks', () => {
  const bounded = (text: string): string => `---\nmax_visits: 1\nthen: E\n---\n${text}`;
  const unbounded = (files: Readonly<Record<string, string>>): readonly string[] =>
    checked(folder({ ...files, 'E.md': END }))
      .filter((line) => line.endsWith(' unbounded-fork'))
      .map((line) => line.replace(/^w\/(.*)\.md:.*$/, '$1'));
  const toW = '<goto>W</goto>';

  test.each<[string, Readonly<Record<string, string>>, readonly string[]]>([
    ['a worker that is begun where it was begun', { 'W.md': '<fork next="W">W</fork>' }, ['W']],
    ['one that comes there', { 'W.md': '<fork next="E">A</fork>', 'A.md': bounded(toW) }, ['W']],
    ['one whose own worker does', { 'W.md': '<fork next="E">A</fork>', 'A.md': '<fork next="E">W</fork>' }, ['W', 'A']],
    ['one that ends', { 'W.md': '<fork next="W">E</fork>' }, []],
  ])('visits do not bound workers, since each counts for itself: %s', (_, { 'W.md': fork = '', ...files }, found) => {
    expect(unbounded({ 'START.md': toW, 'W.md': bounded(fork), ...files })).toEqual(found);
  });

  test.each<[string, Readonly<Record<string, string>>, readonly string[]]>([
    ['that forks', { 'W.md': bounded('<fork next="W">E</fork>') }, []],
    ['on the way', { 'W.md': '<fork next="A">E</fork>', 'A.md': bounded(toW) }, []],
    [
      'on the way, unless it goes on there when they are over',
      { 'W.md': '<fork next="A">E</fork>', 'A.md': '---\nmax_visits: 1\nthen: W\n---\n<goto>W</goto>' },
      ['W'],
    ],
    ['of none', { 'W.md': '<fork next="A">E</fork>', 'A.md': toW }, ['W']],
  ])('visits bound an agent that comes back itself: those of a state %s', (_, files, found) => {
    expect(unbounded({ 'START.md': toW, ...files })).toEqual(found);
  });

  test('a worker comes to what is entered instead if it can come back to what counts its visits', () => {
    const files = { 'START.md': '<fork next="E">W</fork>', 'AGAIN.md': '<fork next="E">W</fork>' };
    const then = '---\nmax_visits: 2\nthen: AGAIN\n---\n';
    expect(unbounded({ ...files, 'W.md': `${then}${toW}` })).toEqual(['AGAIN']);
    expect(unbounded({ ...files, 'W.md': `${then}${END}` })).toEqual([]);
  });
});

describe('settings', () => {
  const files = {
    'workflow.yaml': 'model: small\nadapter: one\ntotal_timeout: 600\ntimeout: 5m\nretries: 0\n',
    'START.md': `---\nmodel: large\ntotal_timeout: 0\n---\n<goto>B.md</goto>`,
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

  test('a file that is neither executable nor a .sh file is not a state', () => {
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

  const b = folder({ 'START.md': END, 'OTHER.md': END }, { key: 'b', name: 'b' });
  const findB: RaymondInput['find'] = (_from, path) => {
    const [, start] = /^\.\.\/b(?:\/(.*))?$/.exec(path) ?? [null, null];
    return start === null ? null : { kind: 'raymond', source: { ...b, start: start ?? null } };
  };
  const callsB = (path: string): FolderSource => {
    const policy = '---\nallowed_transitions: [{ tag: call-workflow, target: ../b, return: N }]\n---\n';
    return folder({ 'START.md': `${policy}<call-workflow return="N">${path}</call-workflow>`, 'N.md': END });
  };

  test.each(['../b', './../b/', '../b/START.md', '../b/START'])('are allowed by where a path leads: %s', (path) => {
    expect(checked(callsB(path), findB)).toEqual([]);
  });

  test('that a policy does not name are not allowed', () => {
    expect(checked(callsB('../b/OTHER.md'), findB)).toEqual(['w/START.md:4:1 contradicting-policy']);
  });

  test.each([
    '<call-workflow return="R">../nope</call-workflow>',
    '<fork-workflow next="R">../nope</fork-workflow>',
    '---\nallowed_transitions: [{ tag: call-workflow, target: ../nope, return: R }]\n---\nGo.',
    '<ask next="START" timeout="1h" timeout_next="RR">?</ask>',
  ])('that are not there, as states that are not, are all that is told of: %j', (text) => {
    const [problem, ...more] = checked(folder({ 'START.md': text, 'R.md': END }));
    expect(problem).toMatch(/ missing-(?:workflow|target)$/);
    expect(more).toEqual([]);
  });

  test('whose one file cannot be read have no other problem', () => {
    const find = (): Found => ({ kind: 'raymond', source: { ...single('states: ['), key: 'o', name: 'o.yaml' } });
    const source = folder({ 'START.md': '<call-workflow return="R">../o.yaml</call-workflow>', 'R.md': END });
    expect(checked(source, find)).toEqual(['w/START.md:1:1 missing-workflow', 'o.yaml:1:9 invalid-yaml']);
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
      { numRuns: attempts(500) },
    );
  });
});
