// Renders an adapter (ir/adapter.ts) for one start of an agent or one headless turn: its commands with all placeholders
// replaced, its environment, its files and its home folder.
//
// Each run and adapter has one home folder: `homes/ADAPTER` in the run's folder. Files that the agent must share with
// the user's home are linked, so that a login works in both; files that the agent would change are copied, once.

import type { RunFiles } from '../../engine/ports.ts';
import { cpSync, existsSync, symlinkSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { present } from '../../base/assert.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../sys/errno.ts';
import { own } from '../../base/json.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import type { Adapter, AdapterFile, Hole, HomeFolder } from '../../ir/adapter.ts';
import { shellWord } from '../../ir/quote.ts';
import { fillString } from '../../ir/text.ts';
import type { Text } from '../../ir/text.ts';
import type { DriverContext } from '../environment.ts';
import { fileName } from '../step-folder.ts';
import { makeFolder, writePrivate } from '../../sys/private-file.ts';

/** Values of placeholders; a placeholder without a value is an error where it is used. */
export type HoleValues = Readonly<Partial<Record<Hole, string>>>;

export interface Place {
  readonly agent: string;
  /** Absolute. */
  readonly workdir: string;
  /** Absolute folder of the start or the turn. */
  readonly folder: string;
}

export function holeValues(adapter: Adapter, run: DriverContext, place: Place): HoleValues {
  const bin = run.binFolder ?? null;
  return {
    agent: place.agent,
    workflow_id: run.runId,
    workdir: place.workdir,
    folder: place.folder,
    socket: run.socket,
    inbox: run.inbox,
    ...(adapter.home === null ? {} : { home: homeOf(adapter, run.files) }),
    ...(bin === null ? {} : { meow: join(bin, 'meow'), hook: shellWord(join(bin, 'hook.sh')) }),
  };
}

/** The error is a sentence. `escape` is applied to each value. */
function fillHoles(text: Text, values: HoleValues, escape = asItIs): Result<string, string> {
  return fillString(text, ([name = '']) => {
    const value = own(values, name as Hole);
    return value === undefined ? err(`{{${name}}} has no value here`) : ok(escape(value));
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

/** The caller's environment with the adapter's changes. The error is a sentence. */
export function adapterEnvironment(
  adapter: Adapter,
  base: Readonly<Record<string, string>>,
  values: HoleValues,
): Result<Readonly<Record<string, string>>, string> {
  const environment: Record<string, string> = { ...base };
  for (const [name, text] of Object.entries(adapter.environment)) {
    const value = fillHoles(text, values);
    if (!value.ok) return value;
    if (value.value === '') delete environment[name];
    else environment[name] = value.value;
  }
  if (adapter.home !== null) environment[adapter.home.variable] = present(values.home, 'a home folder without a path');
  return ok(environment);
}

/** Creates the home folder and writes the files. The error is a sentence. */
export function layOut(
  adapter: Adapter,
  values: HoleValues,
  environment: Readonly<Record<string, string>>,
): Result<null, string> {
  try {
    const folder = present(values.folder, 'a start without a folder');
    if (adapter.home !== null) furnish(adapter.home, present(values.home, 'a home folder without a path'), environment);
    for (const file of adapter.files) {
      const path = fillHoles(file.path, values);
      if (!path.ok) return path;
      const content = fillHoles(file.content, values, ESCAPES[file.format]);
      if (!content.ok) return content;
      const target = resolve(folder, path.value);
      makeFolder(dirname(target));
      writePrivate(target, content.value);
    }
    return ok(null);
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED)) return err(error.message);
    throw error;
  }
}

function furnish(
  { variable, from, link, copy }: HomeFolder,
  home: string,
  environment: Readonly<Record<string, string>>,
): void {
  makeFolder(home);
  const users = environment[variable] ?? join(environment['HOME'] ?? homedir(), from);
  for (const name of link) place(join(users, name), join(home, name), (source, target) => symlinkSync(source, target));
  for (const name of copy)
    place(join(users, name), join(home, name), (source, target) => cpSync(source, target, { recursive: true }));
}

/** Skips what the user does not have and what exists already: an agent of this run may have changed it. */
function place(source: string, target: string, put: (source: string, target: string) => void): void {
  if (!existsSync(source) || existsSync(target)) return;
  makeFolder(dirname(target));
  try {
    put(source, target);
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
  }
}

function homeOf({ name }: Adapter, files: RunFiles): string {
  return files.localPath(`homes/${fileName(name)}`);
}

function asItIs(value: string): string {
  return value;
}

/** For use inside a quoted string: JSON's escapes are valid in TOML. */
function inString(value: string): string {
  return JSON.stringify(value).slice(1, -1);
}

const ESCAPES: Readonly<Record<AdapterFile['format'], (value: string) => string>> = {
  json: inString,
  toml: inString,
  text: asItIs,
};
