// SSH signatures of decisions, made and verified by `ssh-keygen -Y`. Both exchange the text and the signature by files in a
// private temporary folder.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { isSystemError } from '../sys/errors.ts';
import { outputOf } from '../sys/process.ts';

/** A signature that was made for another purpose is not one for a gate. */
const NAMESPACE = 'meow-gate';

/** Far more than a verification takes. */
const VERIFY_MS = 30_000;
const OUTPUT_MAX = 10_000;

/** `by`: the file of a key; true is the user's own: see `ownKey`. Asks for its passphrase if it has one. */
export function signText(text: string, by: string | true): string {
  return inPrivateFolder((folder) => {
    const file = join(folder, 'text');
    writeFileSync(file, text, { mode: 0o600 });
    const args = ['-q', '-Y', 'sign', '-n', NAMESPACE, '-f', by === true ? ownKey(folder) : by, file];
    // It asks on the terminal, and says on stderr what is wrong.
    const { error, status } = spawnSync(program(), args, { stdio: ['inherit', 'ignore', 'inherit'] });
    if (error !== undefined) throw noProgram(error);
    if (status !== 0) throw new UsageError('the decision was not signed', 'see what ssh-keygen says above');
    return readFileSync(`${file}.sig`, 'utf8');
  });
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
export function signatureProblem(
  text: string,
  name: string,
  signature: string,
  signers: string,
): Promise<string | null> {
  const folder = makePrivateFolder();
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

function inPrivateFolder<T>(act: (folder: string) => T): T {
  const folder = makePrivateFolder();
  try {
    return act(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** mkdtemp makes it 0700. */
function makePrivateFolder(): string {
  return mkdtempSync(join(tmpdir(), 'meow-signature-'));
}
