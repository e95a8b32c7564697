// What it takes to add a language, an effect, a store and a face: files that are new, and edits of existing files.

export interface Toy {
  /** How many existing files it may touch. */
  readonly limit: number;
  /** Path below test/extension/ → path in the source tree. */
  readonly files: Readonly<Record<string, string>>;
  readonly edits: readonly Edit[];
}

export interface Edit {
  readonly path: string;
  /** Must occur exactly once. */
  readonly find: string;
  readonly replace: string;
}

const LINES = 'src/languages/lines/language.ts';

export const TOYS: Readonly<Record<'language' | 'effect' | 'store' | 'face', Toy>> = {
  language: {
    limit: 2,
    files: { 'language/lines.ts': LINES },
    edits: [
      before(
        'src/languages/registry.ts',
        "import { meow } from './meow/language.ts';",
        "import { lines } from './lines/language.ts';\n",
      ),
      { path: 'src/languages/registry.ts', find: 'conductor];', replace: 'conductor, lines];' },
    ],
  },

  effect: {
    limit: 4,
    files: {
      'effect/reverse-spec.ts': 'src/ir/reverse-spec.ts',
      'effect/reverse-driver.ts': 'src/drivers/reverse-driver.ts',
    },
    edits: [
      before(
        'src/ir/effect.ts',
        "import type { FilledText } from './text.ts';",
        "import type { ReverseSpec } from './reverse-spec.ts';\n",
      ),
      before('src/ir/effect.ts', '  | GateSpec<T>;', '  | ReverseSpec<T>\n'),
      before('src/ir/effect.ts', '  gate: true,', '  reverse: true,\n'),
      before(
        'src/kernel/prepare-step.ts',
        "    case 'git':\n",
        `    case 'reverse': {
      const text = fillText(effect.text, lookup);
      return text.ok ? ok({ ...effect, text: text.value }) : text;
    }
`,
      ),
      before(
        'src/view/step-effect.ts',
        "    case 'read':\n",
        "    case 'reverse':\n      return { ...plain, kind: 'reverse', text: show(effect.text) };\n",
      ),
      before(
        'src/app/run-drivers.ts',
        "import { readDriver } from '../drivers/read-driver.ts';",
        "import { reverseDriver } from '../drivers/reverse-driver.ts';\n",
      ),
      before(
        'src/app/run-drivers.ts',
        '      spawn: guardedAgents,\n',
        '      reverse: guarded(() => reverseDriver(files)),\n',
      ),
      // A language that uses it: the toy language, which is not an existing file.
      before(
        LINES,
        '  const captures = ',
        `  const [, step] = /^reverse (\\S+)$/.exec(script) ?? [];
  if (step !== undefined) return { kind: 'reverse', text: { parts: [{ path: [step, 'outputs', 'text'], quote: [] }] } };
`,
      ),
    ],
  },

  store: {
    limit: 1,
    files: { 'store/toy-store.ts': 'src/stores/toy/toy-store.ts' },
    edits: [
      before(
        'src/app/runs.ts',
        "import { fileStore } from '../stores/files.ts';",
        "import { toyStore } from '../stores/toy/toy-store.ts';\n",
      ),
      before(
        'src/app/runs.ts',
        '  return fileStore({ folder: project.runs });',
        "  if (process.env['MEOW_STORE'] === 'toy') return toyStore();\n",
      ),
    ],
  },

  face: { limit: 0, files: { 'face/text-page.ts': 'src/web/text-page.ts' }, edits: [] },
};

function before(path: string, find: string, text: string): Edit {
  return { path, find, replace: text + find };
}
