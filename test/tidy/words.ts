// How the code speaks: one word for one thing, a contract at the head of each file, and nothing left half done.

import { codeUnder, isTest, lineAt, matches, type Rule } from './tree.ts';

/** Says nothing about what is inside, so everything ends up inside. */
const EMPTY_NAMES = [
  'utils',
  'util',
  'helpers',
  'helper',
  'common',
  'core',
  'misc',
  'types',
  'manager',
  'service',
  'index',
];

/** A second word for a thing that has one, spelled as its parts: `EventLog`, `event_log` and `eventLog` are one. */
const SECOND_WORDS: Readonly<Record<string, string>> = {
  'workflow run': 'Run',
  'workflow instance': 'Run',
  'workflow execution': 'Run',
  execution: 'Run',
  task: 'Step',
  job: 'Step',
  orchestrator: 'engine',
  'event log': 'Journal',
  'event store': 'Journal (its keeper: Store)',
  'audit log': 'Journal',
  wal: 'Journal',
  persistence: 'Store',
  'event sourced': 'State, the fold of the Journal',
  approval: 'Gate',
  plugin: 'Driver or Adapter',
  opcode: 'Effect',
};

/** These speak of foreign things by their own names: keywords of a language, fields of an agent's output. */
const FOREIGN_WORDS = /^src\/(languages|drivers|ipc|app|cli|web|mcp|lsp)\//;

/** A folder or file named so in src is a drawer, not a subject. */
export const namesSayWhatIsInside: Rule = (tree) =>
  [...tree.keys()]
    .filter((path) => path.startsWith('src/'))
    .flatMap((path) => {
      const parts = path.split('/').slice(1);
      const stems = parts.map((part) => part.replace(/\..*$/, ''));
      const empty = stems.find((stem) => EMPTY_NAMES.some((name) => stem === name || stem.endsWith(`-${name}`)));
      if (empty !== undefined) return [`${path}:1: "${empty}" does not say what is inside`];
      const odd = parts.find((part) => !/^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z]+)*$/.test(part));
      return odd === undefined ? [] : [`${path}:1: "${odd}" is not kebab-case`];
    });

export const oneWordForOneThing: Rule = (tree) =>
  codeUnder(tree, 'src')
    .filter(({ path }) => !FOREIGN_WORDS.test(path))
    .flatMap(({ path, bare }) =>
      [...bare.matchAll(/[A-Za-z_$][\w$]*/g)].flatMap(({ 0: name, index }) => {
        const parts = ` ${partsOf(name)} `;
        const second = Object.keys(SECOND_WORDS).find(
          (word) => parts.includes(` ${word} `) || parts.includes(` ${word}s `),
        );
        if (second === undefined) return [];
        return [`${path}:${lineAt(bare, index)}: ${name}: our word for it is ${SECOND_WORDS[second]}`];
      }),
    );

/** `finishedEventLog` → `finished event log`. */
function partsOf(name: string): string {
  return name
    .replaceAll(/([a-z0-9])([A-Z])/g, '$1 $2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .replaceAll(/[_$]+/g, ' ')
    .toLowerCase();
}

/** Where types of foreign data are declared, their tags are what they are. */
const FOREIGN_TAGS = /^src\/(drivers|web|mcp)\//;

export const unionsDiscriminateOnKind: Rule = (tree) =>
  codeUnder(tree, 'src')
    .filter(({ path }) => !FOREIGN_TAGS.test(path))
    .flatMap(({ path, tags }) =>
      tags
        .filter(({ name }) => ['type', 'tag', '_tag', 'variant'].includes(name))
        .map(({ name, line }) => `${path}:${line}: ${name}: unions discriminate on kind`),
    );

const UNFINISHED = /\b(TODO|FIXME|XXX|HACK)\b/g;

export const nothingIsLeftForLater: Rule = (tree) =>
  [...tree]
    .filter(([path]) => /^(src|test|bench|scripts)\//.test(path) && !isOwnSource(path))
    .flatMap(([path, text]) =>
      matches(path, text, UNFINISHED, 'do it, or write down where it is tracked and why it waits'),
    );

const ESCAPES: readonly (readonly [RegExp, string])[] = [
  [/\bas\s+any\b|[:<,|&]\s*any\b(?!\s*[:=(])/g, 'any: say unknown and look, or name the type'],
  [/\b(test|it|describe|suite)(\.\w+)*\.only\b/g, 'only: the other tests are silent'],
];

export const noWayAroundTheCompiler: Rule = (tree) =>
  ['src', 'test', 'bench'].flatMap((folder) =>
    codeUnder(tree, folder)
      .filter(({ path }) => !isOwnSource(path))
      .flatMap(({ path, bare, text }) => [
        ...ESCAPES.flatMap(([pattern, says]) => matches(path, bare, pattern, says)),
        ...matches(path, text, /@ts-(ignore|nocheck)\b/g, 'the compiler is told to look away'),
      ]),
  );

/** A comment that says why nothing is to be done will do. */
export const noErrorIsSwallowed: Rule = (tree) =>
  ['src', 'test', 'bench'].flatMap((folder) =>
    codeUnder(tree, folder).flatMap(({ path, bare, text }) =>
      [...bare.matchAll(/\bcatch\s*(\([^)]*\)\s*)?\{\s*\}/g)]
        .filter(({ 0: match, index }) => !/\/[/*]/.test(text.slice(index, index + match.length)))
        .map(({ index }) => `${path}:${lineAt(bare, index)}: an empty catch: say why nothing is to be done`),
    ),
  );

export const filesOpenWithTheirContract: Rule = (tree) =>
  codeUnder(tree, 'src')
    .filter(({ path, text }) => !isTest(path) && !/^(#!.*\n)?\s*\/[/*]/.test(text))
    .map(({ path }) => `${path}:1: opens without a comment: tell first what a reader may count on`);

const LINES_MAX = 600;

/** Longer, and still one subject. */
const LONG: Readonly<Record<string, string>> = {};

export const filesHoldOneSubject: Rule = (tree) =>
  codeUnder(tree, 'src').flatMap(({ path, text }) => {
    const lines = text.trimEnd().split('\n').length;
    if (lines > LINES_MAX && !(path in LONG)) {
      return [`${path}:${LINES_MAX}: has ${lines} lines: two subjects? If it is one, say so in the list LONG`];
    }
    return lines <= LINES_MAX && path in LONG ? [`${path}:1: has ${lines} lines: take it off the list LONG`] : [];
  });

/** The rules and their examples must spell out what they forbid. */
function isOwnSource(path: string): boolean {
  return path === 'test/tidy.test.ts' || path.startsWith('test/tidy/');
}

/** Our own, which are no products. */
const OWN_AGENTS = new Set(['sim', 'command']);

/** What is true of one agent stands in its adapter, and in what reads its output. */
export const agentsAreKnownByTheirAdapters: Rule = (tree) => {
  const adapters = [...tree.keys()].flatMap((path) => /^lib\/adapters\/([^/]+)\/adapter\.toml$/.exec(path)?.[1] ?? []);
  const names = adapters.filter((name) => !OWN_AGENTS.has(name));
  if (names.length === 0) return [];
  const named = new RegExp(`\\b(?:${names.join('|')})\\b`, 'gi');
  return [...tree].flatMap(([path, text]) => {
    if (!/^(?:src|bin)\//.test(path) || path.startsWith('src/drivers/agent/readers/') || isTest(path)) return [];
    return [...text.matchAll(named)].map(
      ({ 0: name, index }) => `${path}:${lineAt(text, index)}: ${name} is for its adapter and its reader to know`,
    );
  });
};
