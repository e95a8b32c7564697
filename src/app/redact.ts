// Masks secrets in what the programs of a run have written, before it is shown, sent or exported: logs, terminals, files.
// Journals, state files and everything computed from them hold references already, and must not be masked again.
//
// redact/1  A process needs neither the environment of the run nor its configuration: the run's engine leaves fingerprints
//           of its secrets (sys/secret-prints.ts).
// redact/2  Secrets of the own environment and secrets of known kinds are masked as well.

import { randomBytes } from 'node:crypto';
import { linkSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';

import { isJsonMap, readJsonText } from '../base/json.ts';
import { formsOf, FormSearch, type SearchedForm } from '../sys/secret-forms.ts';
import { factorOf, printsOf, searchedPrint, type SecretPrint } from '../sys/secret-prints.ts';
import { asIs, latin1, MaskedStream, type Redactor, searchedForm, SecretMasks } from '../sys/secrets.ts';
import { tolerate } from '../sys/errors.ts';
import { makeFolder, readUntrustedFile, replacePrivate, writePrivate } from '../sys/files.ts';
import { ownEnvironment, sharedFolder } from './project.ts';
import { DEFAULT_CONFIG } from '../languages/config.ts';
import { secretValues } from './run-secrets.ts';

export type { RedactingStream } from '../sys/secrets.ts';

export interface RunRedactor extends Redactor {
  /** Of the same length, for readers that show a part of a file by its offset. */
  hide(bytes: Uint8Array): Uint8Array;
}

/** `runFolder`: absolute; null if it is not here. The result knows what the run's engine knows now. */
export function redactorOfRun(runFolder: string | null): RunRedactor {
  const key = readKey();
  const own = secretValues(ownEnvironment(), DEFAULT_CONFIG.secretNames, process.cwd());
  const factor = key === null ? 1 : factorOf(key);
  const forms: SearchedForm[] = [];
  for (const [name, value] of own)
    for (const [form, text] of formsOf(value)) forms.push(searchedForm(name, form, latin1(text), factor));
  if (key !== null && runFolder !== null)
    for (const print of readPrints(runFolder)) forms.push(searchedPrint(print, key));
  const masks = new SecretMasks(new FormSearch(forms, factor), asIs);
  const redactBytes = (bytes: Uint8Array): Buffer => masks.redact(bytes);
  return {
    redact: (text) => redactBytes(Buffer.from(text)).toString(),
    redactBytes,
    wholeFrom(text, from) {
      const cut = latin1(text.slice(0, from)).length;
      const whole = masks.wholeFrom(latin1(text), cut);
      return whole === cut ? from : Buffer.from(latin1(text).slice(0, whole), 'latin1').toString().length;
    },
    stream: () => new MaskedStream(masks, asIs),
    hide: (bytes) => masks.hide(bytes),
  };
}

/** Leaves fingerprints of forms of secrets, by name, in addition to earlier ones. Throws system errors. */
export function leavePrints(runFolder: string, secrets: ReadonlyMap<string, ReadonlyMap<string, string>>): void {
  const known = readPrints(runFolder);
  const macs = new Set(known.map(({ mac }) => mac));
  const added = printsOf(secrets, readKey() ?? makeKey()).filter(({ mac }) => !macs.has(mac));
  if (added.length === 0) return;
  const prints = [...known, ...added].slice(-PRINTS_MAX);
  replacePrivate(join(runFolder, PRINTS_FILE), `${JSON.stringify({ format: 1, prints })}\n`);
}

/** In the folder of a run. It tells nothing without the key of this user, so an export leaves it out. */
export const PRINTS_FILE = 'secret-prints.json';

const PRINTS_MAX = 20_000;
const PRINTS_BYTES_MAX = 8_000_000;
const KEY_BYTES = 32;

function readPrints(runFolder: string): readonly SecretPrint[] {
  const text = readUntrustedFile(join(runFolder, PRINTS_FILE), PRINTS_BYTES_MAX)?.text ?? '';
  const read = readJsonText(text);
  if (!read.ok || !isJsonMap(read.value) || !Array.isArray(read.value['prints'])) return [];
  return (read.value['prints'] as readonly unknown[]).filter(isPrint);
}

function isPrint(value: unknown): value is SecretPrint {
  if (typeof value !== 'object' || value === null) return false;
  const { name, form, length, hash, hasLineEnd, mac } = value as Record<string, unknown>;
  const texts = [name, form, mac].every((text) => typeof text === 'string');
  return texts && Number.isSafeInteger(length) && typeof hash === 'number' && typeof hasLineEnd === 'boolean';
}

function keyFile(): string {
  return join(sharedFolder(), 'secret-prints.key');
}

/** Null if there is none yet. */
function readKey(): Buffer | null {
  const text = readUntrustedFile(keyFile(), 1_000)?.text ?? '';
  const key = Buffer.from(text, 'base64');
  return key.length === KEY_BYTES ? key : null;
}

/** If several processes make one at the same time, the first counts. */
function makeKey(): Buffer {
  const key = randomBytes(KEY_BYTES);
  makeFolder(sharedFolder());
  const unfinished = `${keyFile()}.${process.pid}.new`;
  writePrivate(unfinished, `${key.toString('base64')}\n`);
  tolerate(['EEXIST'], undefined, () => linkSync(unfinished, keyFile()));
  unlinkSync(unfinished);
  return readKey() ?? key;
}
