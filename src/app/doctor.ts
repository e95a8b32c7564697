// The checks of `meow doctor`: the machine, and the program of each adapter.

import { accessSync, constants, existsSync, type FSWatcher, readFileSync, statSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import { spawn } from 'node:child_process';

import { processesOfRun } from '../drivers/environment.ts';
import { findProgram } from '../drivers/recording-shell.ts';
import type { Store } from '../engine/ports.ts';
import type { Adapter, RequiredProgram } from '../ir/adapter.ts';
import { isSystemError, tolerate } from '../sys/errors.ts';
import type { FoundAdapter } from './adapters.ts';
import type { Project } from './project.ts';
import { runsWithProcesses } from './run-agents.ts';
import { hasRun, readRun, storeOf, unlessRefused } from './runs.ts';
import { shownPath } from './sources.ts';

export interface Check {
  readonly name: string;
  readonly status: 'ok' | 'warning' | 'missing';
  readonly text: string;
  /** How to fix it; null if nothing is needed. */
  readonly cure: string | null;
  /** Required to run anything. */
  readonly needed: boolean;
}

function ok(name: string, text: string): Check {
  return { name, status: 'ok', text, cure: null, needed: false };
}

function warning(name: string, text: string, cure: string | null): Check {
  return { name, status: 'warning', text, cure, needed: false };
}

function missing(name: string, text: string, cure: string | null, needed = false): Check {
  return { name, status: 'missing', text, cure, needed };
}

/** Negative if the first is older; parts that are not numbers are ignored. */
export function compareVersions(one: string, other: string): number {
  const parts = (version: string): readonly number[] => (version.match(/\d+/g) ?? []).map(Number);
  const [a, b] = [parts(one), parts(other)];
  for (let at = 0; at < Math.max(a.length, b.length); at++) {
    const difference = (a[at] ?? 0) - (b[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

const NODE_MIN = '20.19';
const TMUX_MIN = '3.2';

/** Requirements of meow itself, and optional features of the machine. */
export async function checkMachine(project: Project, patienceMs: number): Promise<readonly Check[]> {
  return [
    checkNode(process.versions.node),
    checkShell(),
    checkFolder(project),
    await checkTool('tmux', 'tmux -V', `agents in terminals need tmux ${TMUX_MIN} or newer`, TMUX_MIN, patienceMs),
    await checkTool('git', 'git --version', 'worktrees and meow adapter install need it', '0', patienceMs),
    checkProgram('flock', 'without it, a lock is a file that names its holder', 'install util-linux'),
    checkProgram('perl', 'many commands at once start slower without it', 'install perl'),
    checkWatches(project),
    ...(await checkOrphans(storeOf(project))),
  ];
}

async function checkOrphans(store: Store): Promise<readonly Check[]> {
  const found: Check[] = [];
  for (const id of runsWithProcesses()) {
    const isHere = await unlessRefused(hasRun(store, id), false);
    const run = isHere ? await unlessRefused(readRun(store, id), null) : null;
    if (run === null || (await store.holder(id)) !== null) continue;
    const pids = processesOfRun(id, run.state.request?.mark ?? '').map(({ pid }) => pid);
    if (pids.length === 0) continue;
    const isDone = run.state.end === 'done';
    const text = `run ${id} has no engine, and has left ${pids.length === 1 ? 'a process' : 'processes'}: ${pids.join(', ')}`;
    const stopping = run.state.phase === 'ended' ? `kill ${pids.join(' ')}` : `meow stop ${id}`;
    found.push(warning('orphans', text, `${isDone ? '' : `meow resume ${id} finds them; `}stop them: ${stopping}`));
  }
  return found.length > 0 ? found : [ok('orphans', 'none: no run without an engine has left processes')];
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
    return missing('runs', `cannot be stored in ${shown} (${error.code})`, `make it writable for you: ${at}`, true);
  }
}

/** `min`: the oldest version that works. */
async function checkTool(
  name: string,
  command: string,
  without: string,
  min: string,
  patienceMs: number,
): Promise<Check> {
  if (find(name) === null) return missing(name, `not on PATH: ${without}`, `install ${name}`);
  const trial = await tryCommand(command, process.env, patienceMs);
  const version = trial.kind === 'ended' ? (/\d+\.\d+\S*/.exec(trial.output)?.[0] ?? null) : null;
  if (version === null) return warning(name, 'its version is unknown', `see what it says: ${command}`);
  if (compareVersions(version, min) >= 0) return ok(name, version);
  return missing(name, `${version} is too old: ${without}`, `install ${name} ${min} or newer`);
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
    return warning('watches', `no folder can be watched (${error.code}): meow looks now and then instead`, cure);
  } finally {
    watcher?.close();
  }
}

function find(name: string): string | null {
  return findProgram(name, process.env['PATH'] ?? '');
}

/** Whether each adapter's program is ready for an unattended start. Starts no agent, and does not use the network. */
export async function checkAdapters(all: readonly FoundAdapter[], patienceMs: number): Promise<readonly Check[]> {
  return (await Promise.all(all.map((found) => checkAdapter(found, patienceMs)))).flat();
}

async function checkAdapter({ name, adapter, problem }: FoundAdapter, patienceMs: number): Promise<readonly Check[]> {
  if (adapter === null) return [warning(name, problem ?? 'has an error', `fix it: meow adapter show ${name}`)];
  const { program } = adapter;
  if (program === null) return [];
  const environment = environmentOf(adapter);
  if (findProgram(program.name, environment['PATH'] ?? '') === null) {
    const cure = program.install === null ? null : `install it: ${program.install}`;
    return [missing(name, `${program.name} is not on PATH`, cure)];
  }
  const attempt: Attempt = (command) => tryCommand(command, environment, patienceMs);
  const checks = [await checkVersion(name, program, attempt)];
  const { loginCommand, loginCure } = program;
  const login = loginCommand === null ? [] : [{ name: 'login', command: loginCommand, cure: loginCure }];
  for (const { name: what, command, cure } of [...login, ...program.checks]) {
    const trial = await attempt(command);
    const isFine = trial.kind === 'ended' && trial.status === 0;
    const subject = `${name}: ${what}`;
    checks.push(isFine ? ok(subject, 'fine') : warning(subject, problemOf(trial, patienceMs), cure));
  }
  return checks;
}

function problemOf(trial: Trial, patienceMs: number): string {
  if (trial.kind === 'late') return `no answer in ${Math.round(patienceMs / 1_000)}s`;
  return trial.kind === 'ended' ? 'needs you' : trial.reason;
}

type Attempt = (command: string) => Promise<Trial>;

async function checkVersion(name: string, program: RequiredProgram, attempt: Attempt): Promise<Check> {
  const { versionCommand, tried, install } = program;
  if (versionCommand === null) return ok(name, 'is there');
  const trial = await attempt(versionCommand);
  if (trial.kind === 'late')
    return warning(name, `does not answer: ${versionCommand}`, 'start it by hand, and see what it waits for');
  const version = trial.kind === 'ended' ? (/\d+\.\d+(?:\.\d+)?/.exec(trial.output)?.[0] ?? null) : null;
  if (version === null)
    return warning(name, `does not print its version: ${versionCommand}`, 'start it by hand, and see what it says');
  if (tried.length === 0 || tried.includes(version)) return ok(name, version);
  const known = `tried with ${tried.join(', ')}`;
  const oldest = tried.toSorted(compareVersions)[0] ?? version;
  if (compareVersions(version, oldest) >= 0) return ok(name, `${version}; ${known}`);
  const cure = install === null ? null : `install it anew: ${install}`;
  return warning(name, `${version} is older than what was ${known}`, cure);
}

/** The environment of its agents, except for what only a start knows. */
function environmentOf({ environment }: Adapter): NodeJS.ProcessEnv {
  const known = Object.entries(environment).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  // An empty value removes the variable.
  const own = known.map(([name, value]) => [name, value === '' ? undefined : value]);
  return { ...process.env, ...Object.fromEntries(own) };
}

/** Runs a short command and returns how it ended. It has little time and no input. */
type Trial =
  | { readonly kind: 'ended'; readonly status: number; readonly output: string }
  | { readonly kind: 'late' }
  | { readonly kind: 'refused'; readonly reason: string };

const OUTPUT_MAX = 10_000;

export function tryCommand(command: string, env: NodeJS.ProcessEnv, timeoutMs: number): Promise<Trial> {
  return new Promise((resolve) => {
    let output = '';
    const child = spawn('sh', ['-c', command], { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    const end = (trial: Trial): void => {
      clearTimeout(timer);
      resolve(trial);
    };
    const timer = setTimeout(() => {
      const { pid } = child;
      // It may have ended by itself.
      if (pid !== undefined) tolerate(['ESRCH'], undefined, () => process.kill(-pid, 'SIGKILL'));
      child.stdout.destroy();
      child.stderr.destroy();
      end({ kind: 'late' });
    }, timeoutMs);
    // They are missing if the system has no room for the process.
    for (const stream of child.pid === undefined ? [] : [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        if (output.length < OUTPUT_MAX) output += text;
      });
    }
    child.once('error', (error) => end({ kind: 'refused', reason: error.message }));
    child.once('close', (code) => end({ kind: 'ended', status: code ?? 1, output }));
  });
}
