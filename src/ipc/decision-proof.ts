// Proofs that a person made a decision about a gate: an HMAC with the key of the user, or an SSH signature.
//
// The key is 32 random bytes in `~/.meow/decision.key`, or in the file that MEOW_DECISION_KEY names. The first decision makes
// it; engines only read it. Steps and agents are never told its path.

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

import { err, ok, type Result, UsageError } from '../base/errors.ts';
import { describeErrno, isSystemError, tolerate } from '../sys/errors.ts';
import { readUntrustedFile } from '../sys/files.ts';
import type { ProofChecks } from './authorize-decision.ts';
import { signatureProblem } from './ssh-signature.ts';

const KEY_VARIABLE = 'MEOW_DECISION_KEY';
const KEY_BYTES = 32;
const SIGNERS_BYTES_MAX = 1024 * 1024;

type Variables = Readonly<Record<string, string | undefined>>;

/** In lower-case hexadecimal digits. Makes the key if it does not exist. */
export function proveWithKey(environment: Variables, text: string): string {
  const found = findKey(environment);
  if (!found.ok) throw unusable(found.error);
  const { path, key } = found.value;
  return hmacOf(key ?? makeKey(path), text);
}

/**
 * Checks proofs with the key of the user, which is read at each decision because the first one makes it, and with a file of
 * allowed signers, which is read now: an agent that adds its own key afterwards gains nothing while this engine lives.
 */
export function proofChecks(environment: Variables, signersFile: string): ProofChecks {
  const readSigners = (): string | null => readUntrustedFile(signersFile, SIGNERS_BYTES_MAX)?.text ?? null;
  const signers = readSigners();
  return {
    hmacProblem(text, hmac) {
      const found = findKey(environment);
      if (!found.ok) return `its proof cannot be checked: ${found.error}`;
      const { path, key } = found.value;
      if (key === null) return `its proof cannot be checked: the engine has no key ${path}`;
      // Takes the same time wherever they differ.
      if (timingSafeEqual(Buffer.from(hmacOf(key, text), 'hex'), Buffer.from(hmac, 'hex'))) return null;
      return `its proof is for another decision, or was not made with the key of the engine, ${path}`;
    },
    async signatureProblem(text, name, signature) {
      const problem =
        signers === null
          ? `its signature cannot be checked: the engine has no file ${signersFile}`
          : await signatureProblem(text, name, signature, signers);
      if (problem === null || readSigners() === signers) return problem;
      return `${problem}; ${signersFile} has changed since the engine started, and is read again on meow resume`;
    },
  };
}

function hmacOf(key: Uint8Array, text: string): string {
  return createHmac('sha256', key).update(text, 'utf8').digest('hex');
}

interface FoundKey {
  /** Absolute. */
  readonly path: string;
  /** Null if the file does not exist. */
  readonly key: Uint8Array | null;
}

/** An error is a clause. */
function findKey(environment: Variables): Result<FoundKey, string> {
  const configured = environment[KEY_VARIABLE] ?? '';
  // The system may know no home folder for this user.
  const home = tolerate('any', '', () => homedir());
  const path = configured === '' ? join(home, '.meow', 'decision.key') : configured;
  if (isAbsolute(path)) return readKey(path);
  return err(configured === '' ? 'you have no home folder' : `${KEY_VARIABLE} is not an absolute path`);
}

function readKey(path: string): Result<FoundKey, string> {
  const file = readUntrustedFile(path, KEY_BYTES, 'latin1');
  if (file === null) {
    const isAbsent = tolerate('any', false, () => lstatSync(path, { throwIfNoEntry: false }) === undefined);
    return isAbsent ? ok({ path, key: null }) : err(`${path} is not a file that you may read`);
  }
  const key = Buffer.from(file.text ?? '', 'latin1');
  return key.length === KEY_BYTES ? ok({ path, key }) : err(`${path} does not contain ${KEY_BYTES} bytes`);
}

function makeKey(path: string): Uint8Array {
  const folder = dirname(path);
  const unfinished = `${path}.${randomBytes(8).toString('hex')}`;
  try {
    // Otherwise `sudo` would leave a key that its user cannot read.
    const nearest = existsSync(folder) ? folder : dirname(folder);
    const owner = statSync(nearest).uid;
    if (process.geteuid?.() === 0 && owner !== 0) throw unusable(`${nearest} belongs to another user (uid ${owner})`);
    tolerate(['EEXIST'], undefined, () => mkdirSync(folder, 0o700));
    writeFileSync(unfinished, randomBytes(KEY_BYTES), { flag: 'wx', mode: 0o600, flush: true });
    chmodSync(unfinished, 0o600);
    // Unlike a rename, this never replaces a key that somebody else has made meanwhile.
    tolerate(['EEXIST'], undefined, () => linkSync(unfinished, path));
    unlinkSync(unfinished);
    const opened = openSync(folder, 'r');
    fsyncSync(opened);
    closeSync(opened);
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw unusable(`${path} cannot be made: ${describeErrno(error.code)} (${error.code})`);
  }
  const made = readKey(path);
  if (made.ok && made.value.key !== null) return made.value.key;
  throw unusable(made.ok ? `${path} has been removed` : made.error);
}

function unusable(why: string): UsageError {
  return new UsageError(
    `a decision needs your key: ${why}`,
    `decide as the user who started the run, or set ${KEY_VARIABLE} to a file of yours, here and for the engine`,
  );
}
