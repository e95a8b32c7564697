// Who may import whom, and what the pure layers do without.

import { type Code, codeUnder, type Import, isTest, matches, type Rule } from './tree.ts';

interface Layer {
  /** Layers, or single files of them, that may be imported; `type LAYER` for its types alone. */
  readonly imports: readonly string[];
  /** No Node API, clock, chance, promise: the same call gives the same answer, at once. */
  readonly pure?: true;
  /** No Node API: the world is reached through engine/ports.ts. */
  readonly sealed?: true;
  /** Packages; anything goes where this is left out. */
  readonly packages?: readonly string[];
}

const PARSERS = ['toml-eslint-parser', 'yaml', 'mdast-util-from-markdown'];
const ALL = [
  'base',
  'ir',
  'languages',
  'kernel',
  'engine',
  'sys',
  'drivers',
  'stores',
  'view',
  'prove',
  'sim',
  'testing',
  'ipc',
  'app',
  'cli',
  'web',
  'page',
  'mcp',
  'lsp',
];

const FACE = ['base', 'sys', 'view', 'app'];

const LAYERS: Readonly<Record<string, Layer>> = {
  base: { pure: true, packages: [], imports: [] },
  ir: { pure: true, packages: [], imports: ['base'] },
  languages: { pure: true, packages: PARSERS, imports: ['base', 'ir'] },
  kernel: { pure: true, packages: [], imports: ['base', 'ir'] },
  view: { pure: true, packages: [], imports: ['base', 'ir', 'kernel'] },
  prove: { pure: true, packages: [], imports: ['base', 'ir', 'kernel', 'view'] },
  engine: { sealed: true, packages: [], imports: ['base', 'ir', 'kernel'] },
  sys: { packages: [], imports: ['base', 'engine/ports.ts'] },
  sim: {
    packages: [],
    imports: [
      'base',
      'sys',
      'ir',
      'languages/toml.ts',
      'languages/toml-fields.ts',
      'languages/toml-tree.ts',
      'languages/report.ts',
      'languages/keys.ts',
      'languages/sim-keys.ts',
    ],
  },
  drivers: { imports: ['base', 'sys', 'ir', 'engine/ports.ts', 'sim/mail.ts'] },
  stores: { imports: ['base', 'sys', 'ir', 'type kernel', 'engine/ports.ts'] },
  ipc: { packages: [], imports: ['base', 'sys', 'ir', 'kernel', 'engine/client.ts', 'engine/ports.ts'] },
  // The world of tests replaces everything behind engine/ports.ts.
  testing: {
    packages: [],
    imports: ['base', 'sys', 'ir', 'languages', 'kernel', 'engine', 'view', 'prove', 'sim', 'ipc', 'drivers'],
  },
  // The faces: what they need of other layers is a function of app, or a type that app exports.
  web: { imports: [...FACE, 'type ir', 'type kernel'] },
  // In the browser: folds and shows runs with the same functions as the engine and the terminal.
  page: {
    packages: ['preact', 'preact/hooks', '@preact/signals', '@xterm/xterm'],
    imports: ['base', 'ir', 'kernel', 'view', 'web/protocol.ts'],
  },
  mcp: { imports: FACE },
  lsp: { imports: FACE },
  cli: { imports: [...FACE, 'mcp', 'lsp', 'web', 'sim/main.ts'] },
  app: { imports: ALL.filter((layer) => !['cli', 'web', 'page', 'mcp', 'lsp'].includes(layer)) },
};

/** A test beside its source sees what its source sees, and the tools of a test. */
const IN_TESTS = /^(node:|vitest$|fast-check$)/;

const IMPURE: readonly (readonly [RegExp, string])[] = [
  [/(?<![.\w])Date\b/g, 'Date: time arrives in an input'],
  [/\bMath\s*\.\s*random\b/g, 'Math.random: chance arrives in an input'],
  [/(?<![.\w])crypto\b/g, 'crypto: chance arrives in an input'],
  [/(?<![.\w])performance\b/g, 'performance: time arrives in an input'],
  [/(?<![.\w])(async|await)\b/g, 'async: a pure layer answers at once'],
  [/(?<![.\w])Promise(Like)?\b/g, 'Promise: a pure layer answers at once'],
  [/(?<![.\w])(setTimeout|setInterval|setImmediate|queueMicrotask)\b/g, 'a timer: deadlines are effects'],
  [/(?<![.\w])(process|console)\s*\./g, 'the process: a pure layer neither reads nor prints'],
];

export const importsKeepToTheLayers: Rule = (tree) =>
  codeUnder(tree, 'src').flatMap((code) => {
    const layer = layerOf(code.path);
    if (LAYERS[layer] === undefined) return [`${code.path}:1: ${layer} is no layer: there are ${ALL.join(', ')}`];
    return code.imports.flatMap((imported) => {
      const problem = objection(code, layer, imported);
      return problem === undefined ? [] : [`${code.path}:${imported.line}: ${problem}`];
    });
  });

function objection({ path }: Code, layer: string, { specifier, target, typeOnly }: Import): string | undefined {
  const { imports = [], packages, pure, sealed } = LAYERS[layer] ?? {};
  if (isTest(path) && (IN_TESTS.test(specifier) || target?.startsWith('test/') === true)) return undefined;
  if (target === undefined) {
    if (specifier.startsWith('node:')) return pure || sealed ? `${layer} may not use Node: ${specifier}` : undefined;
    if (packages === undefined || packages.includes(specifier)) return undefined;
    return `${layer} may not import the package ${specifier}`;
  }
  if (!target.startsWith('src/')) return `src may not import ${target}`;
  const other = layerOf(target);
  if (other === layer || imports.includes(other) || imports.includes(target.slice('src/'.length))) return undefined;
  if (imports.includes(`type ${other}`)) return typeOnly ? undefined : `${layer} may import only types from ${other}`;
  const files = imports.filter((allowed) => allowed.startsWith(`${other}/`));
  return `${layer} may not import ${other}${files.length > 0 ? `, save ${files.join(', ')}` : ''}`;
}

export const languagesDoNotKnowEachOther: Rule = (tree) =>
  codeUnder(tree, 'src/languages').flatMap(({ path, imports }) => {
    const language = languageOf(path);
    return imports.flatMap(({ target, line }) => {
      const other = target === undefined ? undefined : languageOf(target);
      if (language === undefined || other === undefined || language === other) return [];
      return [`${path}:${line}: the language ${language} may not import the language ${other}`];
    });
  });

export const pureLayersArePure: Rule = (tree) =>
  codeUnder(tree, 'src')
    .filter(({ path }) => LAYERS[layerOf(path)]?.pure === true && !isTest(path))
    .flatMap(({ path, bare }) => IMPURE.flatMap(([pattern, says]) => matches(path, bare, pattern, says)));

/** Type imports count: two files that need each other's types are one subject in two places. */
export const importsFormNoCycle: Rule = (tree) => {
  const files = new Map(codeUnder(tree, 'src').map((code) => [code.path, code]));
  const findings: string[] = [];
  const finished = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path);
    if (start >= 0) findings.push(`${path}:1: imports itself: ${[...trail.slice(start), path].join(' → ')}`);
    if (start >= 0 || finished.has(path)) return;
    for (const { target } of files.get(path)?.imports ?? []) {
      if (target !== undefined) visit(target, [...trail, path]);
    }
    finished.add(path);
  };
  for (const path of files.keys()) visit(path, []);
  return findings;
};

const PROGRAM = 'src/cli/main.ts';
const PAGES = ['src/page/main.tsx', 'src/page/enter.ts', 'src/page/terminal-frame.ts'];

/** Every file is reached from the program, or from the pages that it serves. */
export const noFileIsDead: Rule = (tree) => {
  if (!tree.has(PROGRAM)) return [];
  const all = ['src', 'test', 'bench'].flatMap((folder) => codeUnder(tree, folder));
  const imports = new Map(all.map((code) => [code.path, code.imports.flatMap(({ target }) => target ?? [])]));
  const reach = (roots: readonly string[]): Set<string> => {
    const reached = new Set(roots);
    for (const path of reached) for (const target of imports.get(path) ?? []) reached.add(target);
    return reached;
  };
  const inProgram = reach([PROGRAM, ...PAGES]);
  const inTests = reach(all.flatMap(({ path }) => (path.startsWith('src/') && !isTest(path) ? [] : path)));
  return all.flatMap(({ path }) => {
    if (!path.startsWith('src/') || isTest(path) || inProgram.has(path)) return [];
    const isTool = inTests.has(path);
    return [`${path}:1: is imported by ${isTool ? "tests alone: a test's tool lives in test/" : 'nothing'}`];
  });
};

function layerOf(path: string): string {
  return path.split('/')[1] ?? '';
}

/** The folder of a language; undefined for what stands beside them. */
function languageOf(path: string): string | undefined {
  return /^src\/languages\/([^/]+)\//.exec(path)?.[1];
}
