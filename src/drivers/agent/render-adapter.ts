// What an adapter (ir/adapter.ts) comes to for one start of an agent, or one headless turn: its commands with every hole
// filled, its environment, its files and its home folder.
//
// A home folder is one for each run and adapter: `homes/ADAPTER` in the run's folder. What the user's own has and the agent
// must share is linked, so that a login holds in both; what the agent would change is copied, once.

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
import type { RunSurroundings } from '../environment.ts';
import { fileName } from '../step-folder.ts';
import { makeFolder, writePrivate } from '../../sys/private-file.ts';

/** What holes stand for; one that has no value here is refused where it is used. */
export type HoleValues = Readonly<Partial<Record<Hole, string>>>;

export interface Place {
  readonly agent: string;
  /** Absolute. */
  readonly workdir: string;
  /** Of the start or the turn. Absolute. */
  readonly folder: string;
}

export function holeValues(adapter: Adapter, run: RunSurroundings, place: Place): HoleValues {
  const bin = run.binFolder ?? null;
  return {
    agent: place.agent,
    workflow_id: run.runId,
    workdir: place.workdir,
    folder: place.folder,
    socket: run.socket,
    inbox: run.inbox,
    ...(adapter.home === null ? {} : { home: homeOf(adapter, run.runFolder) }),
    ...(bin === null ? {} : { meow: join(bin, 'meow'), hook: shellWord(join(bin, 'hook.sh')) }),
  };
}

/** An error is a sentence. `escape`: what a value must go through where it is put. */
function fillHoles(text: Text, values: HoleValues, escape = asItIs): Result<string, string> {
  return fillString(text, ([name = '']) => {
    const value = own(values, name as Hole);
    return value === undefined ? err(`{{${name}}} has no value here`) : ok(escape(value));
  });
}

/** Several texts of a command, one behind the other; what is null is left out. */
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

/** The caller's environment as the adapter wants it. An error is a sentence. */
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

/** Makes the home folder and writes the files. An error is a sentence. */
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

/** Only what the user has, and what is not there yet: an agent of this run may have changed it since. */
function place(source: string, target: string, put: (source: string, target: string) => void): void {
  if (!existsSync(source) || existsSync(target)) return;
  makeFolder(dirname(target));
  try {
    put(source, target);
  } catch (error) {
    if (!isErrno(error, 'EEXIST')) throw error;
  }
}

function homeOf({ name }: Adapter, runFolder: string): string {
  return join(runFolder, 'homes', fileName(name));
}

function asItIs(value: string): string {
  return value;
}

/** Within the quotes of a string: what TOML wants is a part of what JSON writes. */
function inString(value: string): string {
  return JSON.stringify(value).slice(1, -1);
}

const ESCAPES: Readonly<Record<AdapterFile['format'], (value: string) => string>> = {
  json: inString,
  toml: inString,
  text: asItIs,
};
