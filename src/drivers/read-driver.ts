// The driver that reads lists from JSON files. Reading changes nothing, so a later engine simply reads again.

import { open } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { assert } from '../base/assert.ts';
import type { Json } from '../base/json.ts';
import { readJsonText } from '../base/json-text.ts';
import { err, ok } from '../base/result.ts';
import type { Result } from '../base/result.ts';
import type { Answer, Driver, RunFiles } from '../engine/ports.ts';
import { success } from '../ir/effect.ts';
import type { Effect, Outcome, ReadSpec } from '../ir/effect.ts';
import { failure } from '../ir/failure.ts';
import type { FilledText } from '../ir/text.ts';
import { PendingEffect, soon } from './pending-effect.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../sys/errno.ts';
import { crash } from '../sys/throw-uncaught.ts';
import { jsonErrorPosition } from './json-error-position.ts';
import { resolveText } from './resolve-text.ts';

export interface ReadDriverOptions {
  readonly files: RunFiles;
  /** The default working directory. Absolute. */
  readonly cwd: string;
}

const BYTES_MAX = 64 * 1024 * 1024;

export function readDriver(options: ReadDriverOptions): Driver {
  const asked = new Map<string, PendingEffect>();
  const ask = (effect: Effect, answer: Answer): void => {
    const { id, spec } = effect;
    assert(spec.kind === 'read', `nothing to read: ${id} is a ${spec.kind}`);
    const known = asked.get(id);
    if (known !== undefined) {
      known.answers.push(answer);
      return;
    }
    const reading = new PendingEffect(answer);
    asked.set(id, reading);
    const perform = async (): Promise<void> => {
      await soon();
      const outcome = reading.isStopped
        ? STOPPED
        : await Promise.race([read(spec), reading.stopped.then(() => STOPPED)]);
      asked.delete(id);
      for (const each of reading.answers) each(outcome);
    };
    perform().catch(crash);
  };
  const read = async (spec: ReadSpec<FilledText>): Promise<Outcome> => {
    const path = resolveText(spec.path, options.files);
    const items = path.ok ? await readList(pathOf(path.value, spec.from, options)) : path;
    if (items.ok) return success({ items: items.value });
    return { kind: 'failure', failure: failure('invalid-items', items.error) };
  };
  return {
    start: ask,
    find: ask,
    stop: (effectId, how) => asked.get(effectId)?.stop(how),
  };
}

const STOPPED: Outcome = { kind: 'failure', failure: failure('stopped', 'the file was not read any more') };

/** An error is a sentence. */
async function readList(path: string): Promise<Result<readonly Json[], string>> {
  if (path.includes('\0')) return err('the path of the file contains a NUL byte');
  const text = await readText(path);
  if (!text.ok) return text;
  const read = readJsonText(text.value);
  if (!read.ok)
    return err(
      jsonErrorPosition(text.value) === null ? `${path}: ${read.error}` : `${path} is not JSON: ${faultOf(text.value)}`,
    );
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

function faultOf(text: string): string {
  const at = jsonErrorPosition(text) ?? text.length;
  const before = text.slice(0, at).split('\n');
  const place = `line ${before.length}, column ${Array.from(before.at(-1) ?? '').length + 1}`;
  if (at >= text.length) return text.trim() === '' ? 'it is empty' : `it breaks off at ${place}`;
  return `${JSON.stringify(text.slice(at, at + 20))} at ${place} does not belong there`;
}

function describe(value: Json): string {
  return value === null ? 'null' : typeof value === 'object' ? 'a map' : `a ${typeof value}`;
}
