// A driver around another: secrets leave the engine's records here, and enter them nowhere else.
//
// secret-guard/1  Effects have references to secrets (base/secret-reference.ts); the driver inside gets the values. A value that
//          is put into a script is quoted after it was filled in.
// secret-guard/2  Outcomes and progress have references in the place of secrets, before the engine sees them. Names stay as they
//          are: of steps, outputs, routes and blocks.
// secret-guard/3  When an effect is over, what this driver's files say of it has references too. Logs belong to the programs that
//          write them: they are masked wherever they are shown.
//
// A stored output has references already (drivers/outputs.ts).

import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import { err, mapAll, ok, type Result } from '../base/errors.ts';
import { isJsonMap, type Json, readJsonText } from '../base/json.ts';
import { hasReference } from '../base/secret-reference.ts';
import type { Answer, Driver, Note, RunFiles } from '../engine/ports.ts';
import type { Effect, Outcome, Progress } from '../ir/effect.ts';
import type { Failure } from '../ir/failure.ts';
import { quote } from '../ir/quote.ts';
import { type FilePiece, type FilledText, plainText, type SecretPiece } from '../ir/text.ts';
import { ABSENT, REFUSED, tolerate } from '../sys/errors.ts';
import { replacePrivate } from '../sys/files.ts';
import { maskJson, maskOutputs, revealJson, type Secrets } from '../sys/secrets.ts';
import { failed, resolveText, storedText } from './outputs.ts';
import { stepPrefixes } from './step-folder.ts';

export interface GuardedRun {
  readonly files: RunFiles;
  readonly secrets: Secrets;
}

export function guardSecrets(driver: Driver, run: GuardedRun): Driver {
  const { secrets } = run;
  const ask = (how: 'start' | 'find'): Driver['start'] => {
    return (effect, answer, note) => {
      const revealed = revealEffect(effect, run);
      // One that may have begun is not refused: it may have a result.
      if (!revealed.ok && how === 'start')
        return void setImmediate(() => answer(maskOutcome(failed('not-started', revealed.error), secrets)));
      const passed = revealed.ok ? revealed.value : effect;
      const isOutput = effect.spec.kind === 'read' && effect.spec.from === 'run-folder';
      const masked: Answer = (outcome) => {
        const result = isOutput ? unescaped(outcome) : maskOutcome(outcome, secrets);
        if (passed !== effect || result !== outcome) scrubStep(effect, run);
        answer(result);
      };
      const noted: Note | undefined = note && ((progress) => note(maskProgress(progress, secrets)));
      driver[how](passed, masked, noted);
    };
  };
  return {
    start: ask('start'),
    find: ask('find'),
    stop: (effectId, how) => driver.stop(effectId, how),
    conclude: (effectId) => driver.conclude?.(effectId),
    decide: (effectId, { dialog, answer, notes, ...verdict }) => {
      const reveal = (text: string): string => secrets.reveal(text);
      driver.decide?.(effectId, {
        ...verdict,
        dialog: { name: dialog.name, text: reveal(dialog.text) },
        answer: answer === null ? null : reveal(answer),
        ...(notes === undefined ? {} : { notes: notes === null ? null : reveal(notes) }),
      });
    },
  };
}

/** The same effect if it has no references. An error is a sentence. */
function revealEffect(effect: Effect, run: GuardedRun): Result<Effect, string> {
  if (!JSON.stringify([effect.spec, effect.variables]).includes('•') && !hasFilePieces(effect.spec)) return ok(effect);
  const spec = revealSpec(effect.spec, run);
  if (!spec.ok) return spec;
  if (effect.spec.kind === 'spawn' && (spec.value as typeof effect.spec).args !== effect.spec.args)
    return err('the arguments of the agent contain a secret, and would be in the list of processes: use env');
  const variables = revealJson(effect.variables, run.secrets) as Effect['variables'];
  const isSame = JSON.stringify(spec.value) === JSON.stringify(effect.spec);
  return ok({ ...effect, spec: spec.value as Effect['spec'], variables, ...(isSame ? {} : { hasSecrets: true }) });
}

function hasFilePieces(spec: unknown): boolean {
  if (Array.isArray(spec)) return spec.some((item) => isPiece(item) || hasFilePieces(item));
  return typeof spec === 'object' && spec !== null && Object.values(spec).some(hasFilePieces);
}

/** Texts of an effect, with the values of secrets. */
function revealSpec(value: unknown, run: GuardedRun): Result<unknown, string> {
  if (typeof value === 'string') return ok(run.secrets.reveal(value));
  if (Array.isArray(value)) {
    if (value.some(isPiece)) return revealPieces(value as readonly (string | FilePiece | SecretPiece)[], run);
    return mapAll(value as readonly unknown[], (item) => revealSpec(item, run));
  }
  if (typeof value !== 'object' || value === null) return ok(value);
  const entries = mapAll(Object.entries(value), ([key, item]): Result<[string, unknown], string> => {
    const revealed = revealSpec(item, run);
    return revealed.ok ? ok([key, revealed.value]) : revealed;
  });
  return entries.ok ? ok(Object.fromEntries(entries.value)) : entries;
}

function isPiece(value: unknown): value is FilePiece | SecretPiece {
  return typeof value === 'object' && value !== null && 'quote' in value && ('file' in value || 'secret' in value);
}

function revealPieces(
  pieces: readonly (string | FilePiece | SecretPiece)[],
  { files, secrets }: GuardedRun,
): Result<FilledText, string> {
  const texts = mapAll(pieces, (piece): Result<string | FilePiece, string> => {
    if (typeof piece === 'string') return ok(secrets.reveal(piece));
    if ('secret' in piece) {
      const quoted = quote(plainText(revealJson(piece.secret, secrets)), piece.quote);
      return quoted.ok ? quoted : err(secrets.redact(quoted.error));
    }
    const read = storedText(piece, files);
    if (!read.ok) return read;
    if (!read.value.includes('•')) return ok(piece);
    const quoted = quote(secrets.reveal(read.value), piece.quote);
    return quoted.ok ? quoted : err(`the contents of ${piece.file}: ${secrets.redact(quoted.error)}`);
  });
  if (!texts.ok) return texts;
  return ok(texts.value.every((text) => typeof text === 'string') ? texts.value.join('') : texts.value);
}

function maskOutcome(outcome: Outcome, secrets: Secrets): Outcome {
  const mask = (text: string): string => secrets.mask(text);
  if (outcome.kind === 'failure') {
    const { failure } = outcome;
    const masked: Failure = {
      ...failure,
      message: mask(failure.message),
      output: failure.output === null ? null : mask(failure.output),
      reprompt: failure.reprompt === null ? null : mask(failure.reprompt),
      outputs: maskOutputs(failure.outputs, secrets, failure.kept),
    };
    const { message, output, reprompt, outputs } = failure;
    const isSame =
      masked.message === message &&
      masked.output === output &&
      masked.reprompt === reprompt &&
      masked.outputs === outputs;
    return isSame ? outcome : { ...outcome, failure: masked };
  }
  const { follows, grown } = outcome;
  const outputs = maskOutputs(outcome.outputs, secrets, outcome.kept);
  const printed = outcome.printed.map(mask);
  const texts = follows === null ? null : (maskJson(follows as unknown as Json, secrets) as unknown as typeof follows);
  const parts = grown?.map((part) => maskText(part, secrets));
  const isSame =
    outputs === outcome.outputs &&
    texts === follows &&
    printed.every((text, at) => text === outcome.printed[at]) &&
    (parts ?? []).every((text, at) => text === grown?.[at]);
  if (isSame) return outcome;
  return { ...outcome, outputs, printed, follows: texts, ...(parts === undefined ? {} : { grown: parts }) };
}

/** A filled text of the engine's records, with the values of secrets. An error is a sentence. */
export function revealText(text: FilledText, run: GuardedRun): Result<string, string> {
  if (typeof text === 'string') return ok(run.secrets.reveal(text));
  const revealed = revealPieces(text, run);
  return revealed.ok ? resolveText(revealed.value, run.files) : revealed;
}

/** JSON text. */
function maskText(json: string, secrets: Secrets): string {
  const read = readJsonText(json);
  if (!read.ok) return secrets.mask(json);
  const masked = maskJson(read.value, secrets);
  return masked === read.value ? json : JSON.stringify(masked);
}

function maskProgress(progress: Progress, secrets: Secrets): Progress {
  const { dialog, doubt, printed } = progress;
  if (dialog === undefined && doubt === undefined && printed === undefined) return progress;
  return {
    ...progress,
    ...(dialog === undefined
      ? {}
      : { dialog: dialog === null ? null : { name: dialog.name, text: secrets.mask(dialog.text) } }),
    ...(doubt === undefined ? {} : { doubt: secrets.mask(doubt) }),
    ...(printed === undefined ? {} : { printed: printed.map((text) => secrets.mask(text)) }),
  };
}

/** Items of a stored text: what was escaped in it no longer is. */
function unescaped(outcome: Outcome): Outcome {
  if (outcome.kind === 'failure') return outcome;
  const change = (value: Json): Json => {
    if (typeof value === 'string')
      return hasReference(value) ? value.replaceAll(/(•••[A-Za-z_][A-Za-z0-9_]*):json2?(?![a-z0-9])/g, '$1') : value;
    if (Array.isArray(value)) return value.map((item) => change(item as Json));
    return isJsonMap(value)
      ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, change(item)]))
      : value;
  };
  return { ...outcome, outputs: change(outcome.outputs) as typeof outcome.outputs };
}

/** The files of an attempt, except for logs, records and stored outputs (secret-guard/3). */
function scrubStep({ step, attempt }: Effect, { files, secrets }: GuardedRun): void {
  const [flat] = stepPrefixes(step, attempt);
  const prefix = files.localPath(flat.slice(0, -1));
  const folder = dirname(prefix);
  const start = `${basename(prefix)}.`;
  for (const name of tolerate([...ABSENT, ...REFUSED], [], () => readdirSync(folder))) {
    if (!name.startsWith(start) || KEPT_NAMES.test(name)) continue;
    scrubFile(join(folder, name), secrets);
  }
}

const KEPT_NAMES = /\.(?:stdout|stderr|status|outputs|silent|turn-end\.json)$/;

/** Masks the secrets in a file of ours. Other things than small regular files are left alone. */
export function scrubFile(path: string, secrets: Secrets): void {
  tolerate([...ABSENT, ...REFUSED], undefined, () => {
    const stats = lstatSync(path);
    if (!stats.isFile() || stats.size > SCRUBBED_BYTES_MAX) return;
    const bytes = readFileSync(path);
    const masked = secrets.redactBytes(bytes);
    if (!masked.equals(bytes)) replacePrivate(path, masked);
  });
}

/** Everything in a folder but what `isKept`, by the path in it. */
export function scrubFolder(folder: string, secrets: Secrets, isKept: (path: string) => boolean, inside = ''): void {
  if (!existsSync(folder)) return;
  for (const entry of tolerate([...ABSENT, ...REFUSED], [], () => readdirSync(folder, { withFileTypes: true }))) {
    const path = inside === '' ? entry.name : `${inside}/${entry.name}`;
    if (isKept(path)) continue;
    if (entry.isDirectory()) scrubFolder(join(folder, entry.name), secrets, isKept, path);
    else if (entry.isFile()) scrubFile(join(folder, entry.name), secrets);
  }
}

const SCRUBBED_BYTES_MAX = 64_000_000;
