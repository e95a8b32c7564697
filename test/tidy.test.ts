// Checks on the tree itself. Each rule is applied to the whole repository, and tried on small trees where it must find
// something, and where it must not. The rules stand in test/tidy/; what they hold is told in ARCHITECTURE.md.

import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  linksLeadSomewhere,
  lockfileHasEveryPlatform,
  noPathOfOneMachine,
  noRegistryIsNamed,
} from './tidy/documents.ts';
import {
  importsFormNoCycle,
  importsKeepToTheLayers,
  languagesDoNotKnowEachOther,
  noFileIsDead,
  pureLayersArePure,
} from './tidy/layers.ts';
import { filesAreOpenedInOnePlace } from './tidy/openers.ts';
import { ruleIdsAreUnique, wordsArePlain } from './tidy/plain-words.ts';
import { readTree, type Rule } from './tidy/tree.ts';
import {
  agentsAreKnownByTheirAdapters,
  filesHoldOneSubject,
  filesOpenWithTheirContract,
  namesSayWhatIsInside,
  noErrorIsSwallowed,
  nothingIsLeftForLater,
  noWayAroundTheCompiler,
  oneWordForOneThing,
  unionsDiscriminateOnKind,
} from './tidy/words.ts';

type Files = Readonly<Record<string, string>>;

const repository = readTree(resolve(import.meta.dirname, '..'));

/** The rule holds for the repository, finds just these findings in `bad`, and nothing in `good`. */
function rule(sentence: string, check: Rule, examples: { bad: Files; finds: readonly string[]; good: Files }): void {
  describe(sentence, () => {
    test('in this repository', () => {
      expect(check(repository)).toEqual([]);
    });
    test('is noticed where it is broken', () => {
      expect(check(new Map(Object.entries(examples.bad)))).toEqual(examples.finds);
    });
    test('asks for no more than it says', () => {
      expect(check(new Map(Object.entries(examples.good)))).toEqual([]);
    });
  });
}

rule('imports keep to the layers', importsKeepToTheLayers, {
  bad: {
    'src/base/a.ts': "import { b } from '../ir/b.ts';",
    'src/kernel/a.ts': "import { b } from '../engine/b.ts';\nexport { c } from '../view/c.ts';",
    'src/kernel/b.ts': "import { readFileSync } from 'node:fs';\nimport pc from 'picocolors';",
    'src/kernel/a.test.ts': "import { b } from '../engine/b.ts';",
    'src/engine/a.ts': "const fs = await import('node:fs');",
    'src/drivers/a.ts': "import type { Loop } from '../engine/loop.ts';",
    'src/stores/a.ts': "import { apply, type State } from '../kernel/apply.ts';",
    'src/web/a.ts': "type State = import('../engine/ports.ts').Store;",
    'src/cli/a.ts': "import type { Store } from '../engine/ports.ts';",
    'src/view/a.ts': "import { rig } from '../../test/rig.ts';",
    'src/plumbing/a.ts': '',
  },
  finds: [
    'src/base/a.ts:1: base may not import ir',
    'src/kernel/a.ts:1: kernel may not import engine',
    'src/kernel/a.ts:2: kernel may not import view',
    'src/kernel/b.ts:1: kernel may not use Node: node:fs',
    'src/kernel/b.ts:2: kernel may not import the package picocolors',
    'src/kernel/a.test.ts:1: kernel may not import engine',
    'src/engine/a.ts:1: engine may not use Node: node:fs',
    'src/drivers/a.ts:1: drivers may not import engine, save engine/ports.ts',
    'src/stores/a.ts:1: stores may import only types from kernel',
    'src/web/a.ts:1: web may not import engine',
    'src/cli/a.ts:1: cli may not import engine',
    'src/view/a.ts:1: src may not import test/rig.ts',
    'src/plumbing/a.ts:1: plumbing is no layer: there are base, ir, languages, kernel, engine, sys, drivers, stores, view, prove, sim, testing, ipc, app, cli, web, page, mcp, lsp',
  ],
  good: {
    'src/kernel/a.ts': "import { b } from '../ir/b.ts';\nimport { c } from './c.ts';\n// import '../engine/b.ts'",
    'src/kernel/a.test.ts': "import { test } from 'vitest';\nimport { readFileSync } from 'node:fs';",
    'src/languages/meow/a.ts': "import { parseTOML } from 'toml-eslint-parser';",
    'src/stores/a.ts': "import type { State } from '../kernel/state.ts';\nimport { open } from 'node:fs/promises';",
    'src/drivers/a.ts': "import type { Driver } from '../engine/ports.ts';",
    'src/mcp/a.ts': "import { reportDone } from '../app/agent-requests.ts';",
    'src/cli/a.ts': "import { storeOf } from '../app/runs.ts';\nimport { isErrno } from '../sys/errors.ts';",
  },
});

rule('languages do not know each other', languagesDoNotKnowEachOther, {
  bad: { 'src/languages/meow/a.ts': "import { b } from '../raymond/b.ts';" },
  finds: ['src/languages/meow/a.ts:1: the language meow may not import the language raymond'],
  good: {
    'src/languages/language.ts': "import { a } from './meow/a.ts';\nimport { b } from './raymond/b.ts';",
    'src/languages/meow/a.ts': "import { b } from './b.ts';\nimport type { Language } from '../language.ts';",
  },
});

rule('pure layers are pure', pureLayersArePure, {
  bad: {
    'src/kernel/a.ts': 'const now = Date.now();\nconst id = `x-${Math.random()}`;',
    'src/ir/a.ts': 'export async function a(): Promise<void> {}',
    'src/view/a.ts': 'console.log(process.argv);\nsetTimeout(() => {}, performance.now());',
  },
  finds: [
    'src/kernel/a.ts:1: Date: time arrives in an input',
    'src/kernel/a.ts:2: Math.random: chance arrives in an input',
    'src/ir/a.ts:1: async: a pure layer answers at once',
    'src/ir/a.ts:1: Promise: a pure layer answers at once',
    'src/view/a.ts:2: performance: time arrives in an input',
    'src/view/a.ts:2: a timer: deadlines are effects',
    'src/view/a.ts:1: the process: a pure layer neither reads nor prints',
    'src/view/a.ts:1: the process: a pure layer neither reads nor prints',
  ],
  good: {
    'src/kernel/a.ts': "// No Date, no await.\nconst help = 'Date.now()';\nconst n = /Promise/.test(`async ${help}`);",
    'src/kernel/a.test.ts': 'const now = Date.now();',
    'src/engine/a.ts': 'await Promise.resolve();',
  },
});

rule('imports form no cycle', importsFormNoCycle, {
  bad: {
    'src/ir/a.ts': "import { b } from './b.ts';",
    'src/ir/b.ts': "import type { C } from './c.ts';",
    'src/ir/c.ts': "import { a } from './a.ts';",
  },
  finds: ['src/ir/a.ts:1: imports itself: src/ir/a.ts → src/ir/b.ts → src/ir/c.ts → src/ir/a.ts'],
  good: {
    'src/ir/a.ts': "import { b } from './b.ts';\nimport { c } from './c.ts';",
    'src/ir/b.ts': "import { c } from './c.ts';",
    'src/ir/c.ts': '',
  },
});

rule('no file is dead', noFileIsDead, {
  bad: {
    'src/cli/main.ts': "import './a.ts';\nvoid import('./cli.ts');",
    'src/cli/a.ts': '',
    'src/cli/cli.ts': '',
    'src/ir/forgotten.ts': '',
    'src/ir/clock.ts': '',
    'src/ir/clock.test.ts': "import './clock.ts';",
  },
  finds: [
    'src/ir/forgotten.ts:1: is imported by nothing',
    "src/ir/clock.ts:1: is imported by tests alone: a test's tool lives in test/",
  ],
  good: {
    'src/cli/main.ts': "void import('./cli.ts');",
    'src/cli/cli.ts': '',
    'src/cli/cli.test.ts': '',
  },
});

rule('links lead somewhere', linksLeadSomewhere, {
  bad: {
    'README.md':
      '# A\n\n[one](docs/none.md) ![two](picture.png)\n[three](docs/a.md#no) [four](#none)\n\n[five]: ../out.md\n',
    'docs/a.md': '# Yes',
  },
  finds: [
    'README.md:3: docs/none.md: there is no docs/none.md',
    'README.md:3: picture.png: there is no picture.png',
    'README.md:4: docs/a.md#no: docs/a.md has no such heading',
    'README.md:4: #none: README.md has no such heading',
    'README.md:6: ../out.md: there is no out.md',
  ],
  good: {
    'README.md': [
      '[a](docs/a.md) [b](docs/a.md#the-run-its-id "titled") [c](docs) [d](#here) [e](https://example.org/x) [f](LICENSE)',
      '# Here',
      '`[not](a.md)` and ``[nor](b.md)``',
      '```md\n[nor this](c.md)\n```',
    ].join('\n'),
    'docs/a.md': '## The `run`: its id\n[up](../README.md#here) [again](#twice-1)\n# Twice\n# Twice',
    'test/conformance/prompt.md': '[input of a test](nowhere.md)',
    LICENSE: '',
  },
});

rule('names say what is inside', namesSayWhatIsInside, {
  bad: {
    'src/base/utils.ts': '',
    'src/core/loop.ts': '',
    'src/engine/run-manager.ts': '',
    'src/engine/index.ts': '',
    'src/engine/runLoop.ts': '',
  },
  finds: [
    'src/base/utils.ts:1: "utils" does not say what is inside',
    'src/core/loop.ts:1: "core" does not say what is inside',
    'src/engine/run-manager.ts:1: "run-manager" does not say what is inside',
    'src/engine/index.ts:1: "index" does not say what is inside',
    'src/engine/runLoop.ts:1: "runLoop.ts" is not kebab-case',
  ],
  good: { 'src/engine/run-loop.test.ts': '', 'src/ir/output-type.ts': '', 'test/e2e/helpers.ts': '' },
});

rule('one word for one thing', oneWordForOneThing, {
  bad: {
    'src/engine/a.ts': 'const eventLog = openWAL();\ninterface WorkflowRun {\n  readonly max_tasks: number;\n}',
  },
  finds: [
    'src/engine/a.ts:1: eventLog: our word for it is Journal',
    'src/engine/a.ts:1: openWAL: our word for it is Journal',
    'src/engine/a.ts:2: WorkflowRun: our word for it is Run',
    'src/engine/a.ts:3: max_tasks: our word for it is Step',
  ],
  good: {
    'src/engine/a.ts':
      "// The task of the orchestrator.\nconst run = 'execution';\nqueueMicrotask(walk);\nconst jobless = 1;",
    'src/languages/conductor/a.ts': 'const opcode = step.task;',
  },
});

rule('unions discriminate on kind', unionsDiscriminateOnKind, {
  bad: { 'src/ir/a.ts': "type A =\n  | { readonly type: 'a' }\n  | { _tag: 'b' };" },
  finds: ['src/ir/a.ts:2: type: unions discriminate on kind', 'src/ir/a.ts:3: _tag: unions discriminate on kind'],
  good: {
    'src/ir/a.ts': "type A = { readonly kind: 'a'; readonly type: OutputType };\nconst schema = { type: 'string' };",
    'src/drivers/a.ts': "interface Line { readonly type: 'assistant' }",
  },
});

rule('nothing is left for later', nothingIsLeftForLater, {
  bad: { 'src/ir/a.ts': '// TODO: the rest\n', 'scripts/a.sh': '# FIXME' },
  finds: [
    'src/ir/a.ts:1: do it, or write down where it is tracked and why it waits',
    'scripts/a.sh:1: do it, or write down where it is tracked and why it waits',
  ],
  good: { 'src/ir/a.ts': "const template = 'meow-XXXXXX';\nconst hacking = todo;" },
});

rule('there is no way around the compiler', noWayAroundTheCompiler, {
  bad: {
    'src/ir/a.ts': 'const a = b as any;\nfunction f(x: any): Map<string, any> {}\n// @ts-ignore\nf();',
    'test/a.test.ts': `${['describe', 'only'].join('.')}('a', () => {});`,
  },
  finds: [
    'src/ir/a.ts:1: any: say unknown and look, or name the type',
    'src/ir/a.ts:2: any: say unknown and look, or name the type',
    'src/ir/a.ts:2: any: say unknown and look, or name the type',
    'src/ir/a.ts:3: the compiler is told to look away',
    'test/a.test.ts:1: only: the other tests are silent',
  ],
  good: {
    'src/ir/a.ts':
      "// as any other\nconst any = 1;\nconst all = { any, some: 'x as any' };\nconst t = expect.any(Number);",
  },
});

rule('no error is swallowed', noErrorIsSwallowed, {
  bad: { 'src/ir/a.ts': 'try {\n  f();\n} catch {}\ntry {\n  f();\n} catch (error) {\n}' },
  finds: [
    'src/ir/a.ts:3: an empty catch: say why nothing is to be done',
    'src/ir/a.ts:6: an empty catch: say why nothing is to be done',
  ],
  good: { 'src/ir/a.ts': 'try {\n  f();\n} catch {\n  // Gone already, which is what we want.\n}' },
});

rule('files open with their contract', filesOpenWithTheirContract, {
  bad: { 'src/ir/a.ts': "import { b } from './b.ts';\n// Late." },
  finds: ['src/ir/a.ts:1: opens without a comment: tell first what a reader may count on'],
  good: {
    'src/ir/a.ts': '// What it is.\n',
    'src/ir/b.ts': '/** What it is. */',
    'src/ir/a.test.ts': "import { a } from './a.ts';",
  },
});

rule('files hold one subject', filesHoldOneSubject, {
  bad: { 'src/ir/a.ts': 'a();\n'.repeat(601) },
  finds: ['src/ir/a.ts:600: has 601 lines: two subjects? If it is one, say so in the list LONG'],
  good: { 'src/ir/a.ts': 'a();\n'.repeat(600) },
});

rule('files are opened in one place', filesAreOpenedInOnePlace, {
  bad: {
    'src/drivers/a.ts': "import { existsSync, writeFileSync } from 'node:fs';",
    'src/app/a.ts': "import {\n  open,\n  rm,\n} from 'node:fs/promises';",
  },
  finds: [
    'src/drivers/a.ts:1: writeFileSync: open and replace files by src/sys/files.ts',
    'src/app/a.ts:1: open: open and replace files by src/sys/files.ts',
  ],
  good: {
    'src/drivers/a.ts':
      "import { existsSync, type Stats } from 'node:fs';\nimport { openPrivate } from '../sys/files.ts';",
    'src/drivers/a.test.ts': "import { writeFileSync } from 'node:fs';",
    'src/sim/a.ts': "import { writeFileSync } from 'node:fs';",
  },
});

rule('agents are known by their adapters', agentsAreKnownByTheirAdapters, {
  bad: { 'lib/adapters/fox/adapter.toml': '', 'src/cli/a.ts': "\nstart('fox');" },
  finds: ['src/cli/a.ts:2: fox is for its adapter and its reader to know'],
  good: {
    'lib/adapters/fox/adapter.toml': 'name = "fox"',
    'lib/adapters/sim/adapter.toml': '',
    'src/drivers/agent/readers/fox.ts': 'readFox();',
    'src/cli/a.ts': "start('sim');",
    'src/cli/a.test.ts': "start('fox');",
  },
});

rule('no path of one machine', noPathOfOneMachine, {
  bad: { 'docs/a.md': 'See `/home/ada/meow`.', 'src/a.ts': "open('/root/.meow/config.toml');" },
  finds: ['docs/a.md:1: a path that exists on one machine', 'src/a.ts:1: a path that exists on one machine'],
  good: { 'docs/a.md': '`~/.meow/`, `docs/home/page.md`, https://example.org/home/a, `.meow/workflows/`' },
});

rule('no registry is named', noRegistryIsNamed, {
  bad: {
    'package-lock.json': '{\n  "resolved": "https://example.org/a.tgz"\n}',
    '.npmrc': 'registry=https://example.org/',
  },
  finds: ['package-lock.json:2: names a registry', '.npmrc:1: names a registry'],
  good: { 'package-lock.json': '{ "integrity": "sha512-x" }', '.npmrc': 'omit-lockfile-registry-resolved=true' },
});

rule('the lockfile has every platform', lockfileHasEveryPlatform, {
  bad: {
    'package-lock.json': '{ "packages": { "node_modules/a": { "optionalDependencies": { "@a/linux": "1.0.0" } } } }',
  },
  finds: ['package-lock.json:1: lacks @a/linux, so `npm ci` fails: run `npm run lock`'],
  good: {
    'package-lock.json':
      '{ "packages": { "node_modules/a": { "optionalDependencies": { "b": "1" } }, "node_modules/c/node_modules/b": {} } }',
  },
});

rule('words are plain', wordsArePlain, {
  bad: {
    'src/kernel/a.ts': "// Whoever resumes it, null where there is none.\nfail('x is no duration');",
    'test/traces/a.trace': '# The run is taken up again.',
  },
  finds: [
    'src/kernel/a.ts:1: "Whoever": write: name who does it',
    'src/kernel/a.ts:1: "where there is none": write: if absent',
    'src/kernel/a.ts:1: "null where": write: if',
    'src/kernel/a.ts:2: "is no duration": write: is not a …',
    'test/traces/a.trace:1: "taken up": write: resume',
  ],
  good: {
    'src/kernel/a.ts': "// Null if absent.\nfail('there is no step x, and it is no longer needed');",
    'test/fixtures/a.ts': '// Whoever is not held yet.',
  },
});

rule('rule ids are unique', ruleIdsAreUnique, {
  bad: {
    'src/ipc/a.ts': '// Head.\n//\n//   inbox/1. One.\n//   R2. Two.\n',
    'src/stores/b.ts': '// Head.\n//\n//   inbox/1. Again.\n// See (inbox/7).\n',
  },
  finds: [
    'src/ipc/a.ts:4: the rule id R2 says nothing: write SUBJECT/NUMBER',
    'src/stores/b.ts:3: the rule id inbox/1 is used in src/ipc/a.ts too',
    'src/stores/b.ts:4: there is no rule inbox/7',
  ],
  good: {
    'src/kernel/a.ts': '//   K1. One.\n//   K2. Two.\n',
    'src/ipc/a.ts': '//   inbox/1. One.\n//   inbox/2. Two, see inbox/1.\n',
    'test/a.test.ts': "test('once (inbox/2)', () => {});",
  },
});
