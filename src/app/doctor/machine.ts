// Requirements of meow itself, and optional features of the machine.

import type { FSWatcher } from 'node:fs';
import { accessSync, constants, existsSync, readFileSync, statSync, watch } from 'node:fs';
import { dirname } from 'node:path';

import { findProgram } from '../../drivers/recording-shell.ts';
import { isSystemError } from '../../sys/errno.ts';
import type { Project } from '../project.ts';
import { shownPath } from '../sources.ts';
import type { Check } from './check.ts';
import { compareVersions, missing, ok, warning } from './check.ts';
import { tryCommand } from './trial.ts';

const NODE_MIN = '20.19';
const TMUX_MIN = '3.2';

export async function checkMachine(project: Project, patienceMs: number): Promise<readonly Check[]> {
  return [
    checkNode(process.versions.node),
    checkShell(),
    checkFolder(project),
    await checkTmux(patienceMs),
    await checkGit(patienceMs),
    checkProgram('flock', 'locks are held without it, by files that name their holder', 'install util-linux'),
    checkProgram('perl', 'many commands at once start slower without it', 'install perl'),
    checkWatches(project),
  ];
}

export function checkNode(version: string): Check {
  if (compareVersions(version, NODE_MIN) >= 0) return ok('node', version);
  return missing('node', `${version} is too old`, `install Node ${NODE_MIN} or newer`, true);
}

function checkShell(): Check {
  const path = find('sh');
  return path === null ? missing('sh', 'not on PATH', 'put /bin on PATH', true) : ok('sh', path);
}

/** Where runs are or would be stored. */
function checkFolder(project: Project): Check {
  const shown = shownPath(project, project.runs);
  let folder = project.runs;
  while (!existsSync(folder)) folder = dirname(folder);
  const at = shownPath(project, folder);
  if (!statSync(folder).isDirectory()) return missing('runs', `${at} is not a folder`, 'move that file away', true);
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return ok('runs', `are kept in ${shown}`);
  } catch (error) {
    if (!isSystemError(error)) throw error;
    const cure = `make it writable for you: ${at}`;
    return missing('runs', `cannot be kept in ${shown} (${error.code ?? ''})`, cure, true);
  }
}

async function checkTmux(patienceMs: number): Promise<Check> {
  const without = `agents in terminals need tmux ${TMUX_MIN} or newer`;
  if (find('tmux') === null) return missing('tmux', `not on PATH: ${without}`, 'install tmux');
  const trial = await tryCommand('tmux -V', process.env, patienceMs);
  const version = trial.kind === 'ended' ? (/(\d+\.\d+\S*)/.exec(trial.output)?.[1] ?? null) : null;
  if (version === null) return warning('tmux', 'its version is unknown', `see what it says: tmux -V`);
  if (compareVersions(version, TMUX_MIN) >= 0) return ok('tmux', version);
  return missing('tmux', `${version} is too old: ${without}`, `install tmux ${TMUX_MIN} or newer`);
}

async function checkGit(patienceMs: number): Promise<Check> {
  const without = 'worktrees and meow adapter install need it';
  if (find('git') === null) return missing('git', `not on PATH: ${without}`, 'install git');
  const trial = await tryCommand('git --version', process.env, patienceMs);
  const version = trial.kind === 'ended' ? (/\d+(?:\.\d+)+/.exec(trial.output)?.[0] ?? null) : null;
  return version === null
    ? warning('git', 'its version is unknown', 'see what it says: git --version')
    : ok('git', version);
}

function checkProgram(name: string, without: string, cure: string): Check {
  const path = find(name);
  return path === null ? warning(name, `not on PATH: ${without}`, cure) : ok(name, path);
}

const WATCHES = '/proc/sys/fs/inotify/max_user_watches';

/** Whether a folder can be watched; otherwise it is polled. */
function checkWatches({ cwd }: Project): Check {
  let watcher: FSWatcher | null = null;
  try {
    watcher = watch(cwd);
    // A system without this file has no such limit.
    return ok('watches', existsSync(WATCHES) ? `at most ${readFileSync(WATCHES, 'utf8').trim()}` : 'work');
  } catch (error) {
    if (!isSystemError(error)) throw error;
    const cure = 'allow more: sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=512';
    return warning('watches', `no folder can be watched (${error.code ?? ''}): meow looks now and then instead`, cure);
  } finally {
    watcher?.close();
  }
}

function find(name: string): string | null {
  return findProgram(name, process.env['PATH'] ?? '');
}
