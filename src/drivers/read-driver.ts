// The driver that reads lists from JSON files. Reading changes nothing, so a later engine simply reads again.

import { open } from 'node:fs/promises';
import { join, resolve } from 'node:path';

import { assert, err, ok, type Result } from '../base/errors.ts';
import { type Json, jsonErrorPosition, readJsonText } from '../base/json.ts';
import type { Answer, Driver, RunFiles } from '../engine/ports.ts';
import { type Effect, type Outcome, type ReadSpec, success } from '../ir/effect.ts';
import type { FilledText } from '../ir/text.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../sys/errors.ts';
import { failed, resolveText } from './outputs.ts';
import { PendingEffects } from './pending-effect.ts';

export interface ReadDriverOptions {
  readonly files: RunFiles;
  /** The default working directory. Absolute. */
  readonly cwd: string;
}

const BYTES_MAX = 64 * 1024 * 1024;

export function readDriver(options: ReadDriverOptions): Driver {
  const pending = new PendingEffects();
  const ask = ({ id, spec }: Effect, answer: Answer): void => {
    assert(spec.kind === 'read', `nothing to read: ${id} is a ${spec.kind}`);
    pending.ask(id, answer, async ({ isStopped, stopped }) =>
      isStopped ? STOPPED : Promise.race([read(spec), stopped.then(() => STOPPED)]),
    );
  };
  const read = async (spec: ReadSpec<FilledText>): Promise<Outcome> => {
    const path = resolveText(spec.path, options.files);
    const items = path.ok ? await readList(pathOf(path.value, spec.from, options)) : path;
    if (items.ok) return success({ items: items.value });
    return failed('invalid-items', items.error);
  };
  return { start: ask, find: ask, stop: (effectId, how) => pending.get(effectId)?.stop(how) };
}

const STOPPED = failed('stopped', 'the file was not read any more');

/** An error is a sentence. */
async function readList(path: string): Promise<Result<readonly Json[], string>> {
  if (path.includes('\0')) return err('the path of the file contains a NUL byte');
  const text = await readText(path);
  if (!text.ok) return text;
  const read = readJsonText(text.value);
  if (!read.ok) {
    const at = jsonErrorPosition(text.value);
    return err(at === null ? `${path}: ${read.error}` : `${path} is not JSON: ${faultAt(at, text.value)}`);
  }
  const { value } = read;
  return Array.isArray(value) ? ok(value as readonly Json[]) : err(`${path} holds no list but ${describe(value)}`);
}

async function readText(path: string): Promise<Result<string, string>> {
  try {
    const file = await open(path, 'r');
    try {
      const stat = await file.stat();
      if (!stat.isFile()) return err(`${path} is not a regular file`);
      if (stat.size > BYTES_MAX) return err(`${path} has ${stat.size} bytes: at most ${BYTES_MAX} are read`);
      const text = await file.readFile('utf8');
      return ok(text.startsWith('\uFEFF') ? text.slice(1) : text);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (isErrno(error, ...ABSENT)) return err(`there is no file ${path}`);
    if (isErrno(error, ...REFUSED, ...EXHAUSTED, 'ENXIO')) return err(`${path} cannot be read (${error.code})`);
    throw error;
  }
}

function pathOf(path: string, from: ReadSpec<unknown>['from'], { cwd, files }: ReadDriverOptions): string {
  return from === 'cwd' ? resolve(cwd, path) : join(files.localPath(''), path);
}

function faultAt(at: number, text: string): string {
  const before = text.slice(0, at).split('\n');
  const place = `line ${before.length}, column ${Array.from(before.at(-1) ?? '').length + 1}`;
  if (at >= text.length) return text.trim() === '' ? 'it is empty' : `it breaks off at ${place}`;
  return `${JSON.stringify(text.slice(at, at + 20))} at ${place} does not belong there`;
}

function describe(value: Json): string {
  return value === null ? 'null' : typeof value === 'object' ? 'a map' : `a ${typeof value}`;
}
