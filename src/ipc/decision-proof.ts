// Proofs that a person made a decision about a gate: an HMAC with the key of the user, or an SSH signature.
//
// The key is 32 random bytes in `~/.meow/decision.key`, or in the file that MEOW_DECISION_KEY names. The first decision makes
// it; engines only read it. Steps and agents are never told its path.

import { spawn, spawnSync } from 'node:child_process';
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';

import { err, ok, type Result, UsageError } from '../base/errors.ts';
import { describeErrno, isSystemError, tolerate } from '../sys/errors.ts';
import { readUntrustedFile } from '../sys/files.ts';
import { outputOf } from '../sys/process.ts';
import type { ProofChecks } from './authorize-decision.ts';

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
    throw unusable(`cannot create ${path}: ${describeErrno(error.code)} (${error.code})`);
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

// SSH signatures, made and verified by `ssh-keygen -Y`. Both exchange the text and the signature by files in a private
// temporary folder.

/** A signature that was made for another purpose is not one for a gate. */
const NAMESPACE = 'meow-gate';

/** Far more than a verification takes. */
const VERIFY_MS = 30_000;
const OUTPUT_MAX = 10_000;

/** `by`: the file of a key; true is the user's own: see `ownKey`. Asks for its passphrase if it has one. */
export function signText(text: string, by: string | true): string {
  const folder = makeTemporaryFolder();
  try {
    const file = join(folder, 'text');
    writeFileSync(file, text, { mode: 0o600 });
    const args = ['-q', '-Y', 'sign', '-n', NAMESPACE, '-f', by === true ? ownKey(folder) : by, file];
    // It asks on the terminal, and says on stderr what is wrong.
    const { error, status } = spawnSync(program(), args, { stdio: ['inherit', 'ignore', 'inherit'] });
    if (error !== undefined) throw noProgram(error);
    if (status !== 0) throw new UsageError('the decision was not signed', 'see the output of ssh-keygen above');
    return readFileSync(`${file}.sig`, 'utf8');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The path of the key that git signs with, else the first key of the ssh-agent, else `~/.ssh/id_ed25519`. */
function ownKey(folder: string): string {
  const agent = outputOf('ssh-add', ['-L'])?.split('\n')[0] ?? '';
  const candidates = [
    outputOf('git', ['config', '--get', 'user.signingkey'])?.trim() ?? '',
    agent,
    '~/.ssh/id_ed25519',
  ];
  for (const candidate of candidates) {
    const literal = candidate.replace(/^key::/, '');
    if (PUBLIC_KEY.test(literal)) {
      // Its private key is in the ssh-agent.
      const file = join(folder, 'key.pub');
      writeFileSync(file, `${literal}\n`, { mode: 0o600 });
      return file;
    }
    const path = candidate.replace(/^~(?=\/)/, homedir());
    const isPrivate = path.endsWith('.pub') && existsSync(path.slice(0, -'.pub'.length));
    // Without a file it is a key of another program, such as GPG.
    if (path !== '' && existsSync(path)) return isPrivate ? path.slice(0, -'.pub'.length) : path;
  }
  throw new UsageError(
    'you have no SSH key to sign with',
    'name one: --sign KEYFILE; or make one: ssh-keygen -t ed25519',
  );
}

const PUBLIC_KEY = /^(?:ssh|ecdsa|sk)-[\w@.-]+ [A-Za-z0-9+/]+={0,2}(?: .*)?$/;

/** `signers`: the text of an allowed_signers file. Null if they know a key of that name that made the signature; else a clause. */
function signatureProblem(text: string, name: string, signature: string, signers: string): Promise<string | null> {
  const folder = makeTemporaryFolder();
  const [signersFile, signatureFile] = [join(folder, 'signers'), join(folder, 'signature')];
  writeFileSync(signersFile, signers, { mode: 0o600 });
  writeFileSync(signatureFile, signature, { mode: 0o600 });
  const args = ['-Y', 'verify', '-f', signersFile, '-I', name, '-n', NAMESPACE, '-s', signatureFile];
  return new Promise((resolve) => {
    let output = '';
    const child = spawn(program(), args, { stdio: ['pipe', 'ignore', 'pipe'], timeout: VERIFY_MS });
    const end = (problem: string | null): void => {
      rmSync(folder, { recursive: true, force: true });
      resolve(problem);
    };
    // It may end without reading.
    child.stdin.on('error', () => {});
    child.stdin.end(text);
    child.stderr.setEncoding('utf8').on('data', (part: string) => {
      if (output.length < OUTPUT_MAX) output += part;
    });
    child.once('error', (error) => end(noProgram(error).message));
    child.once('close', (status) => {
      const [said = ''] = output.trim().split('\n');
      end(status === 0 ? null : `its signature is not one of ${name}${said === '' ? '' : ` (${said})`}`);
    });
  });
}

/** The system's own, if it is there: a folder that comes first on PATH may be writable for agents. */
function program(): string {
  return existsSync('/usr/bin/ssh-keygen') ? '/usr/bin/ssh-keygen' : 'ssh-keygen';
}

function noProgram(error: Error): UsageError {
  if (!isSystemError(error)) throw error;
  return new UsageError(`ssh-keygen cannot be started (${error.code})`, 'install OpenSSH');
}

/** mkdtemp makes it 0700. */
function makeTemporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'meow-signature-'));
}
