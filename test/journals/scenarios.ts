// The runs that are recorded: each language in each state, made from the workflows in projects/.
//
// Every version records the same runs (record.ts), and every later version reads them and resumes them
// (journals.test.ts). The file `hold` in a project keeps work from finishing, and `broken` makes a step fail.

import { cpSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Result, Rig, until } from '../rig/rig.ts';

export const LANGUAGES = ['meow', 'raymond', 'conductor'] as const;
export type Language = (typeof LANGUAGES)[number];

/** `finished` and `failed` have ended; `paused` was left in order, `waiting` (at a gate) and `killed` (at work) were not. */
export const STATES = ['finished', 'failed', 'paused', 'waiting', 'killed'] as const;
export type State = (typeof STATES)[number];

interface Workflow {
  readonly run: readonly string[];
  /** Decides the gate. */
  readonly decide: readonly string[];
  /** Decisions in the journal when only a person can continue. */
  readonly waiting: readonly string[];
  /** Files that exist when `hold` stops all further progress. */
  readonly held: readonly string[];
}

const WORKFLOWS: Readonly<Record<Language, Workflow>> = {
  meow: {
    run: ['publish.meow.toml'],
    decide: ['approve', 'r', 'review'],
    waiting: ['gate-asked review'],
    held: ['compile.began', 'test.began', 'draft.began'],
  },
  raymond: {
    run: ['publish', '--adapter', 'sim'],
    decide: ['answer', 'r', 'yes'],
    waiting: ['gate-asked main.3.ask', 'step-done main_worker1.3.FOUND'],
    held: ['review.began'],
  },
  conductor: {
    run: ['publish.yaml'],
    decide: ['approve', 'r', 'ask'],
    waiting: ['gate-asked ask#1'],
    held: ['implement.began'],
  },
};

const PAUSED = 3;

/** Of the same id whenever it is made, since Programs of Conductor name it; and without the files of git's template. */
const COMMIT = `rm -r .git/hooks .git/info .git/description && git config user.name Ann && git config user.email ann@example.org && git add -A &&
GIT_AUTHOR_DATE=2026-01-01T00:00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00:00Z git commit --quiet -m first`;

/** A project with the run `r` in that state, and no process left of it. */
export async function makeRun(language: Language, state: State): Promise<Rig> {
  const rig = await Rig.setup();
  cpSync(join(import.meta.dirname, 'projects', language), rig.folder, { recursive: true });
  await rig.shell(COMMIT);
  const { run, waiting, held } = WORKFLOWS[language];
  const start = ['run', ...run, '--id', 'r'];
  switch (state) {
    case 'finished':
      expectCode(0, await throughGates(rig, language, [...start, '--no-wait']));
      break;
    case 'failed':
      rig.write('broken', '');
      expectCode(1, await throughGates(rig, language, [...start, '--no-wait']));
      break;
    case 'paused':
      // Both ways to pause: Raymond's run has spent its budget, the others wait for a person.
      expectCode(PAUSED, await rig.meow(...start, ...(language === 'raymond' ? SMALL_BUDGET : ['--no-wait'])));
      break;
    case 'waiting': {
      const live = rig.start(...start);
      for (const decision of waiting) await rig.decided('r', decision);
      live.kill('SIGKILL');
      await live.ended;
      break;
    }
    case 'killed': {
      rig.write('hold', '');
      const live = rig.start(...start);
      for (const file of held) await rig.appears(file);
      if (language === 'raymond') await rig.decided('r', 'step-done main_worker1.3.FOUND');
      live.kill('SIGKILL');
      await live.ended;
      if (language === 'meow') await finishWithoutEngine(rig);
    }
  }
  await rig.killAll();
  return rig;
}

/** Resumes the run, without what kept it from its end. What the last `meow resume` said. */
export async function finishRun(rig: Rig, language: Language): Promise<Result> {
  for (const file of ['hold', 'broken']) rmSync(rig.path(file), { force: true });
  return throughGates(rig, language, ['resume', 'r', '--no-wait', ...(language === 'raymond' ? LARGE_BUDGET : [])]);
}

const SMALL_BUDGET = ['--budget-usd', '0.1'];
const LARGE_BUDGET = ['--budget-usd', '10'];

/** Approves whatever it pauses for. */
async function throughGates(rig: Rig, language: Language, start: readonly string[]): Promise<Result> {
  const first = await rig.meow(...start);
  if (first.code !== PAUSED) return first;
  expectCode(0, await rig.meow(...WORKFLOWS[language].decide, '--as', 'ann'));
  return rig.meow('resume', 'r', '--no-wait');
}

/** One command is killed too, one ends by itself, and the agent reports to the inbox. */
async function finishWithoutEngine(rig: Rig): Promise<void> {
  const status = (step: string): string => rig.read(`.meow/workflows/r/steps/${step}.1.status`);
  process.kill(-Number.parseInt(status('test'), 10), 'SIGKILL');
  rmSync(rig.path('hold'));
  await until(() => status('compile').includes('exit 0'), 'compile to end');
  const inbox = rig.path('.meow/workflows/r/inbox');
  await until(() => readdirSync(inbox).some((name) => /^\w.*\.(ask|tell)$/.test(name)), 'the report of draft');
}

function expectCode(expected: number, { code, stdout, stderr }: Result): void {
  if (code !== expected) throw new Error(`meow ended with ${code} instead of ${expected}: ${stdout}${stderr}`);
}
