// Who may open files: one module opens, writes and replaces every file that other processes could have touched.

import { codeUnder, isTest, lineAt, type Rule } from './tree.ts';

const MODULE = 'src/sys/files.ts';

/** Of `node:fs` and `node:fs/promises`: these follow links, wait for pipes or overwrite, unless they are told not to. */
const OPENING = [
  'appendFile',
  'appendFileSync',
  'copyFile',
  'copyFileSync',
  'cp',
  'cpSync',
  'createReadStream',
  'createWriteStream',
  'open',
  'openSync',
  'writeFile',
  'writeFileSync',
];

/** Files, and folders with all their files, that call them all the same; and why that is safe. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  'src/stores/files.ts': 'journal and program: created exclusively; opened again by openRegular; folders synced',
  'src/stores/peek.ts': 'reads the end of the journal: no-follow and non-blocking',
  'src/stores/local-run-files.ts': 'writes to a descriptor of openPrivate',
  'src/stores/postgres/witness.ts': 'writes to a descriptor of openPrivate',
  'src/stores/lock.ts': 'exclusively, with a name that nobody can foresee',
  'src/stores/errors.ts': 'the probe: exclusively, with a name that nobody can foresee',
  'src/ipc/decision-proof.ts': 'the key of the user, and files in a private temporary folder',
  'src/ipc/client.ts': 'a message: exclusively, with a name that nobody can foresee',
  'src/app/adapter-install.ts': 'adapters, while no run uses them',
  'src/app/testing.ts': 'test files of the user, while no run uses them',
  'src/cli/commands/test.ts': 'reports for the user, at a path that the user names',
  'src/app/test-run.ts': 'a project in a temporary folder',
  'src/testing/': 'a project in a temporary folder',
  'src/cli/main.ts': 'the code cache of the user',
  'src/cli/commands/init.ts': 'new files of the user: exclusively',
  'src/sim/': 'the simulated agent: a program of its own, and one of those others',
  'src/drivers/outputs.ts': 'a stored output, into a file that openPrivate has just created; and files of the user',
  'src/drivers/read-driver.ts': 'a file of the user: non-blocking, and its type is checked',
  'src/drivers/agent/render-adapter.ts':
    'files of the user, copied into the home folder of an agent if they are absent',
  'src/drivers/agent/acp/once-writer.ts': 'the pipe to an agent: non-blocking',
  'src/drivers/agent/tmux/terminal-pane.ts': 'writes to a descriptor of openPrivate',
  'src/drivers/git/': 'git folders and worktrees: contents are compared with the journal, types are checked',
  'src/drivers/conductor/artifacts.ts': 'exclusively, after makeFolderBelow and removeAt',
  'src/drivers/conductor/entrypoint.ts': 'reads the first line of a program of the user, whose type was checked',
  'src/drivers/conductor/workspace.ts': 'exclusively, with a name that nobody can foresee',
};

const FROM_FS = /import\s*\{([^}]*)\}\s*from\s*'node:fs(?:\/promises)?'/g;

export const filesAreOpenedInOnePlace: Rule = (tree) => {
  const needed = new Set<string>();
  const findings = codeUnder(tree, 'src').flatMap(({ path, text }) => {
    if (isTest(path) || path === MODULE) return [];
    const exception = Object.keys(EXCEPTIONS).find(
      (each) => path === each || (each.endsWith('/') && path.startsWith(each)),
    );
    return [...text.matchAll(FROM_FS)].flatMap(({ 1: list = '', index }) => {
      const name = list.split(',').find((each) => OPENING.includes(each.trim().split(/\s/)[0] ?? ''));
      if (name !== undefined && exception !== undefined) needed.add(exception);
      if (name === undefined || exception !== undefined) return [];
      return [`${path}:${lineAt(text, index)}: ${name.trim()}: open and replace files by ${MODULE}`];
    });
  });
  if (!tree.has(MODULE)) return findings;
  const stale = Object.keys(EXCEPTIONS).filter((each) => !needed.has(each));
  return [...findings, ...stale.map((each) => `${each}:1: opens nothing: take it off the list EXCEPTIONS`)];
};
