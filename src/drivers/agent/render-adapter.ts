// Renders an adapter (ir/adapter.ts) for one start of an agent or one headless turn: its commands with all placeholders
// replaced, its environment, its files and its home folder.
//
// Each run and adapter has one home folder: `homes/ADAPTER` in the run's folder. Files that the agent must share with
// the user's home are linked, so that a login works in both; files that the agent would change are copied, once.

import { createHash } from 'node:crypto';
import { cpSync, existsSync, symlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';

import { err, ok, present, type Result } from '../../base/errors.ts';
import { own } from '../../base/json.ts';
import type { Adapter, AdapterFile, Hole, HomeFolder } from '../../ir/adapter.ts';
import type { Effect } from '../../ir/effect.ts';
import { shellWord } from '../../ir/quote.ts';
import { fillString, type Text } from '../../ir/text.ts';
import { tolerate } from '../../sys/errors.ts';
import { makeFolder, readUntrustedFile, replacePrivate } from '../../sys/files.ts';
import type { Environment } from '../../sys/process.ts';
import { type DriverContext, environmentFor, type EnvVariables, inRun } from '../environment.ts';
import { beginning, ending } from '../recording-shell.ts';
import { fileName, unlessRefused } from '../step-folder.ts';
import type { AgentStart } from './files.ts';

/** Values of placeholders; a placeholder without a value is an error where it is used. */
export type HoleValues = Readonly<Partial<Record<Hole, string>>>;

/** `folder`: for its files. Paths are absolute. */
export function holeValues(
  adapter: Adapter,
  run: DriverContext,
  { agent, workdir, folder }: Pick<AgentStart, 'agent' | 'workdir'> & { readonly folder: { readonly path: string } },
): HoleValues {
  const bin = run.binFolder ?? null;
  return {
    agent,
    workflow_id: run.runId,
    workdir,
    folder: folder.path,
    socket: run.socket,
    inbox: run.inbox,
    ...(adapter.home === null ? {} : { home: run.files.localPath(`homes/${fileName(adapter.name)}`) }),
    ...(bin === null ? {} : { meow: join(bin, 'meow'), hook: shellWord(join(bin, 'hook.sh')) }),
  };
}

/** What turns share whose adapter uses the same values of placeholders: rendered once, because a turn may take milliseconds. */
interface RenderedTurns {
  /** For the files, which have the same contents in all of these turns, so that they are written once. Named after a hash of them. */
  readonly folder: string;
  readonly files: readonly FilledFile[];
  readonly environment: EnvVariables;
}

/** Values of placeholders for a turn, and what the turn gets from its adapter and its run. */
export interface TurnRendering {
  readonly holes: HoleValues;
  /** Of the agent, without what belongs to the step. Turns that share it have the same object. */
  readonly environment: EnvVariables;
  readonly files: readonly FilledFile[];
}

/** Renders adapters for the turns of a run. */
export class TurnRenderer {
  readonly #run: DriverContext;
  readonly #rendered = new Map<string, RenderedTurns>();

  constructor(run: DriverContext) {
    this.#run = run;
  }

  /** The error is a sentence. */
  render(adapter: Adapter, turn: Pick<AgentStart, 'agent' | 'workdir'>): Result<TurnRendering, string> {
    // The contents of a file may name the folder.
    const values = holeValues(adapter, this.#run, { ...turn, folder: { path: '' } });
    const key = JSON.stringify([adapter.name, ...holesOf(adapter).map((name) => values[name] ?? null)]);
    const known = this.#rendered.get(key);
    const rendered = known === undefined ? this.#rendering(adapter, values) : ok(known);
    if (!rendered.ok) return rendered;
    if (known === undefined) {
      if (this.#rendered.size >= RENDERED_MAX) this.#rendered.clear();
      this.#rendered.set(key, rendered.value);
    }
    const { folder, files, environment } = rendered.value;
    return ok({ holes: { ...values, folder }, files, environment });
  }

  #rendering(adapter: Adapter, values: HoleValues): Result<RenderedTurns, string> {
    const contents = fillFiles(adapter, values);
    if (!contents.ok) return contents;
    const hash = createHash('sha256').update(JSON.stringify(contents.value)).digest('hex').slice(0, 16);
    const folder = this.#run.files.localPath(`adapters/${fileName(adapter.name)}~${hash}`);
    const files = fillFiles(adapter, { ...values, folder });
    if (!files.ok) return files;
    const environment = adapterEnvironment(adapter, this.#run, { ...values, folder });
    return environment.ok ? ok({ folder, files: files.value, environment: environment.value }) : environment;
  }
}

/** Only agents in folders of their own are many, and then each has few turns. */
const RENDERED_MAX = 100;

/** The placeholders in its files and its environment. */
function holesOf({ files, environment }: Adapter): readonly Hole[] {
  const texts = [...files.flatMap(({ path, content }) => [path, content]), ...Object.values(environment)];
  const parts = texts.flatMap((text) => (typeof text === 'string' ? [] : text.parts));
  return [...new Set(parts.flatMap((part) => (typeof part === 'string' ? [] : (part.path as readonly Hole[]))))];
}

function fillHoles(text: Text, values: HoleValues, format: AdapterFile['format'] = 'text'): Result<string, string> {
  return fillString(text, ([name = '']) => {
    const value = own(values, name as Hole);
    if (value === undefined) return err(`{{${name}}} has no value here`);
    // For use inside a quoted string: JSON's escapes are valid in TOML.
    return ok(format === 'text' ? value : JSON.stringify(value).slice(1, -1));
  });
}

/** Joins the texts of a command; skips null. */
export function fillCommand(texts: readonly (Text | null)[], values: HoleValues): Result<string, string> {
  const parts: string[] = [];
  for (const text of texts) {
    if (text === null) continue;
    const filled = fillHoles(text, values);
    if (!filled.ok) return filled;
    parts.push(filled.value);
  }
  return ok(parts.join(' '));
}

/** The environment of an agent: the caller's, with the changes of its adapter, its run and its step. */
export function agentEnvironment(
  adapter: Adapter,
  run: DriverContext,
  effect: Effect,
  holes: HoleValues,
  own: EnvVariables = {},
): Result<Environment, string> {
  const base = adapterEnvironment(adapter, run, holes);
  return base.ok ? ofStep(base.value, run, effect, { holes, own }) : base;
}

/** Adds what belongs to the step. `base`: the agent's environment without that. */
export function ofStep(
  base: EnvVariables,
  run: DriverContext,
  effect: Effect,
  { holes, own }: { readonly holes: HoleValues; readonly own: EnvVariables },
): Result<Environment, string> {
  const layers = environmentFor({ base, run, effect, own });
  if (!layers.ok) return layers;
  // The tools of `meow mcp` depend on them.
  const permissions = run.permissions ? { MEOW_PERMISSIONS: run.permissions } : {};
  const name = { MEOW_AGENT: present(holes.agent, 'an agent without a name') };
  return ok({ base, own: { ...layers.value.own, ...permissions, ...name } });
}

function adapterEnvironment(adapter: Adapter, run: DriverContext, holes: HoleValues): Result<EnvVariables, string> {
  const base: Record<string, string> = { ...run.environment };
  for (const [name, text] of Object.entries(adapter.environment)) {
    const value = fillHoles(text, holes);
    if (!value.ok) return value;
    if (value.value === '') delete base[name];
    else base[name] = value.value;
  }
  if (adapter.home !== null) base[adapter.home.variable] = present(holes.home, 'a home folder without a path');
  return ok(inRun(base, run));
}

/** Creates the home folder and writes the files. */
export function layOut(adapter: Adapter, values: HoleValues, environment: EnvVariables): Result<null, string> {
  const files = fillFiles(adapter, values);
  return files.ok ? layOutFiles(adapter, { holes: values, files: files.value }, environment) : files;
}

/** The same with files that are filled already. */
export function layOutFiles(
  adapter: Adapter,
  { holes, files }: Pick<TurnRendering, 'holes' | 'files'>,
  environment: EnvVariables,
): Result<null, string> {
  return unlessRefused(() => {
    const folder = present(holes.folder, 'a start without a folder');
    if (!existsSync(folder)) makeFolder(folder);
    if (adapter.home !== null) furnish(adapter.home, present(holes.home, 'a home folder without a path'), environment);
    for (const { path, content } of files) {
      const target = resolve(folder, path);
      // Files that an agent has changed are restored, and programs that read them find them whole.
      if (readUntrustedFile(target, content.length * 4)?.text === content) continue;
      makeFolder(dirname(target));
      replacePrivate(target, content);
    }
    return ok(null);
  });
}

type FilledFile = Readonly<Record<'path' | 'content', string>>;

function fillFiles({ files }: Adapter, values: HoleValues): Result<readonly FilledFile[], string> {
  const filled: FilledFile[] = [];
  for (const file of files) {
    const path = fillHoles(file.path, values);
    if (!path.ok) return path;
    const content = fillHoles(file.content, values, file.format);
    if (!content.ok) return content;
    filled.push({ path: path.value, content: content.value });
  }
  return ok(filled);
}

function furnish({ variable, from, link, copy }: HomeFolder, home: string, environment: EnvVariables): void {
  makeFolder(home);
  const users = environment[variable] ?? join(environment['HOME'] ?? homedir(), from);
  // Skips what the user does not have and what exists already: an agent of this run may have changed it.
  const place = (name: string, put: (source: string, target: string) => void): void => {
    const [source, target] = [join(users, name), join(home, name)];
    if (!existsSync(source) || existsSync(target)) return;
    makeFolder(dirname(target));
    tolerate(['EEXIST'], undefined, () => put(source, target));
  };
  for (const name of link) place(name, (source, target) => symlinkSync(source, target));
  for (const name of copy) place(name, (source, target) => cpSync(source, target, { recursive: true }));
}

// The script of the shell that leads an agent's session: it records its own process first, exclusively (shell/1 in
// drivers/recording-shell.ts), runs the agent's program and records its exit. Signals that stop the agent do not stop
// the shell earlier: they live equally long.

/**
 * `command`: a program with its arguments, verbatim. `terminal`: the shell exits with its terminal, so the system stops
 * the foreground program; a surviving shell would keep an unreachable agent alive.
 */
export function agentShellText(
  command: readonly string[],
  prefix: string,
  { terminal = false, plan = null }: { readonly terminal?: boolean; readonly plan?: string | null } = {},
): string {
  return [
    beginning(prefix, plan),
    terminal ? GO_WITH_TERMINAL : OUTLIVE,
    // Discards the shell's own messages ("Killed"): they are not the agent's.
    'exec 3>&2 2>/dev/null;',
    `${command.map(shellWord).join(' ')} 2>&3 3>&-;`,
    `${ending(prefix)};exit "$meow_status"`,
  ].join('');
}

/** A script as a command for a shell in a terminal; a shell that must stay lives as long as its program. */
export function shellCommand(shell: string, text: string): readonly string[] {
  return [shell, '-c', `${GO_WITH_TERMINAL}\n${text}`];
}

/** A trap with a command is reset in the program; an ignored signal would stay ignored. */
const OUTLIVE = 'trap : HUP INT QUIT TERM;';
const GO_WITH_TERMINAL = 'trap : INT QUIT TERM;';
