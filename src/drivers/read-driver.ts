// The driver that reads lists from JSON files. Reading changes nothing, so a later engine simply reads again.

import { constants, open } from 'node:fs/promises';
import { join, resolve } from 'node:path';

import { assert, err, ok, type Result } from '../base/errors.ts';
import { type Json, jsonErrorPosition, readJsonText } from '../base/json.ts';
import type { Answer, Driver } from '../engine/ports.ts';
import { type Effect, type Outcome, type ReadSpec, success } from '../ir/effect.ts';
import type { FilledText } from '../ir/text.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../sys/errors.ts';
import type { DriverContext } from './environment.ts';
import { failed, resolveText } from './outputs.ts';
import { PendingEffects } from './pending-effect.ts';

const BYTES_MAX = 64 * 1024 * 1024;

type ReadPlaces = Pick<DriverContext, 'files' | 'cwd'>;

export function readDriver(places: ReadPlaces): Driver {
  const pending = new PendingEffects();
  const ask = ({ id, spec }: Effect, answer: Answer): void => {
    assert(spec.kind === 'read', `nothing to read: ${id} is a ${spec.kind}`);
    pending.ask(id, answer, async ({ isStopped, stopped }) =>
      isStopped ? STOPPED : Promise.race([readItems(spec, places), stopped.then(() => STOPPED)]),
    );
  };
  return { start: ask, find: ask, stop: (effectId, how) => pending.get(effectId)?.stop(how) };
}

export async function readItems(spec: ReadSpec<FilledText>, { files, cwd }: ReadPlaces): Promise<Outcome> {
  const path = resolveText(spec.path, files);
  if (!path.ok) return failed('invalid-items', path.error);
  const whole = spec.from === 'cwd' ? resolve(cwd, path.value) : join(files.localPath(''), path.value);
  const items = await readList(whole);
  return items.ok ? success({ items: items.value }) : failed('invalid-items', items.error);
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
  if (Array.isArray(value)) return ok(value as readonly Json[]);
  const kind = value === null ? 'null' : typeof value === 'object' ? 'a map' : `a ${typeof value}`;
  return err(`${path} holds no list but ${kind}`);
}

async function readText(path: string): Promise<Result<string, string>> {
  try {
    // Links are followed: it is a file of the user. A pipe is not waited for.
    const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
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

function faultAt(at: number, text: string): string {
  const before = text.slice(0, at).split('\n');
  const place = `line ${before.length}, column ${Array.from(before.at(-1) ?? '').length + 1}`;
  if (at >= text.length) return text.trim() === '' ? 'it is empty' : `it breaks off at ${place}`;
  return `${JSON.stringify(text.slice(at, at + 20))} at ${place} does not belong there`;
}
