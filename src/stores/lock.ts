// One writer per run (rule E4): a lock that dies with its holder.
//
// With flock(1) the kernel holds the lock on our descriptor; Node opens descriptors close-on-exec, so no child keeps it.
// The file is deleted at release, so whoever gets the lock checks that the path still leads to the file that was locked.
//
// Without flock(1) the file itself is the lock, and is trusted as long as the process that it names lives. A dead holder's
// lock is never removed by those who want it, since two of them could each remove the other's. It is succeeded: the
// successor links its own file as `LOCK.after-NONCE`, named for the one taking that it follows, and only one can. The
// last of this chain holds the lock. Release unlinks the head first; a late successor of an old chain finds that out.

import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { access, chmod, constants, link, open, readFile, stat, unlink, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

import { present } from '../base/assert.ts';
import { UsageError } from '../base/usage-error.ts';
import type { LockHolder } from './holder.ts';
import { isHolderAlive, parseHolder, thisProcess } from './holder.ts';
import { isErrno } from './usage-errors.ts';

export type { LockHolder } from './holder.ts';
export { isHolderAlive } from './holder.ts';

export interface Lock {
  readonly kind: LockHolder['kind'];
  release(): Promise<void>;
}

/** `by` is null where the holder has not yet left its name. */
export type LockAnswer =
  | { readonly kind: 'taken'; readonly lock: Lock }
  | { readonly kind: 'held'; readonly by: LockHolder | null };

export interface LockOptions {
  /** Where flock(1) is; a command that does not exist means to do without. */
  readonly flock?: string;
}

/** Does not wait. The folder of the lock must exist. */
export async function takeLock(path: string, options: LockOptions = {}): Promise<LockAnswer> {
  const command = options.flock ?? 'flock';
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const answer = (await hasCommand(command)) ? await takeByFlock(path, command) : await takeByFile(path);
    if (answer !== 'moved') return answer;
  }
  throw new UsageError(
    `the lock ${path} changes hands all the time`,
    'another engine is starting or ending: try again',
  );
}

/** Whoever wrote their name last; whether they still live is another question. Null where nobody did. */
export async function readLockHolder(path: string): Promise<LockHolder | null> {
  return (await readChain(path)).at(-1)?.holder ?? null;
}

/** Locks the open file for this process, for as long as it is open. False where another has it. */
export async function flockFile(fd: number, command = 'flock'): Promise<boolean> {
  const child = spawn(command, ['-n', '3'], { stdio: ['ignore', 'ignore', 'pipe', fd] });
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (status === 0) return true;
  if (status === 1) return false;
  throw new UsageError(
    `flock(1) failed with status ${status}: ${stderr.trim()}`,
    'the file system may not support locks: keep .meow on a local disk',
  );
}

/** Each further try means that a holder released between two of our steps. */
const TRIES_MAX = 100;

async function takeByFlock(path: string, command: string): Promise<LockAnswer | 'moved'> {
  // Not truncated: it may be another's.
  const file = await open(path, 'a+', 0o600);
  let drop = (): Promise<void> => file.close();
  try {
    if (!(await flockFile(file.fd, command))) return { kind: 'held', by: await livingHolder(path) };
    if (!(await leadsTo(path, file))) return 'moved';
    // An engine that found no flock(1) holds the lock by its text alone.
    const living = await livingHolder(path);
    if (living?.kind === 'file') return { kind: 'held', by: living };
    const release = (): Promise<void> => releaseFlock(path, file);
    drop = release;
    await file.chmod(0o600);
    await file.truncate(0);
    await file.write(JSON.stringify(await newHolder('flock')));
    drop = async () => {};
    return { kind: 'taken', lock: { kind: 'flock', release } };
  } finally {
    await drop();
  }
}

/** The text may still be that of a holder before the present one. */
async function livingHolder(path: string): Promise<LockHolder | null> {
  const holder = await readLockHolder(path);
  return holder !== null && (await isHolderAlive(holder)) ? holder : null;
}

async function releaseFlock(path: string, file: FileHandle): Promise<void> {
  // Deleted while still locked: nobody can have taken it, so it is ours that is deleted.
  if (await leadsTo(path, file)) await unlink(path);
  await file.close();
}

async function leadsTo(path: string, file: FileHandle): Promise<boolean> {
  try {
    const [there, ours] = await Promise.all([stat(path), file.stat()]);
    return there.ino === ours.ino && there.dev === ours.dev;
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return false;
    throw error;
  }
}

async function takeByFile(path: string): Promise<LockAnswer | 'moved'> {
  const chain = await readChain(path);
  const last = chain.at(-1);
  if (last?.holder && (await isHolderAlive(last.holder))) return { kind: 'held', by: last.holder };

  const own = await newHolder('file');
  const place = last === undefined ? path : successorPath(path, last.nonce);
  if (!(await linkText(JSON.stringify(own), place, `${path}.${own.nonce}`))) return 'moved';
  // Where the chain that we joined was released meanwhile, its head is gone, and we hold nothing.
  const now = await readChain(path);
  if (now.at(-1)?.nonce !== own.nonce) {
    await unlink(place);
    return 'moved';
  }
  return { kind: 'taken', lock: { kind: 'file', release: () => releaseChain(now) } };
}

async function releaseChain(chain: readonly Link[]): Promise<void> {
  const head = present(chain[0], 'a lock that was taken has a head');
  await unlinkIfThere(head.path);
  for (const { path } of chain.slice(1)) await unlinkIfThere(path);
}

/** Makes a file appear at the place with its whole text, or not at all. False where the place is taken. */
async function linkText(text: string, place: string, scratch: string): Promise<boolean> {
  try {
    await writeFile(scratch, text, { mode: 0o600, flag: 'wx' });
    await chmod(scratch, 0o600);
    await link(scratch, place);
    return true;
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    throw error;
  } finally {
    await unlinkIfThere(scratch);
  }
}

interface Link {
  readonly path: string;
  readonly holder: LockHolder | null;
  readonly nonce: string;
}

async function readChain(head: string): Promise<readonly Link[]> {
  const chain: Link[] = [];
  let path = head;
  for (;;) {
    const next = await readLink(path);
    if (next === null) return chain;
    chain.push(next);
    path = successorPath(head, next.nonce);
  }
}

async function readLink(path: string): Promise<Link | null> {
  try {
    const holder = parseHolder(await readFile(path, 'utf8'));
    if (holder !== null) return { path, holder, nonce: holder.nonce };
    // Left empty by a crash: the file itself is then all that tells it from others.
    const { ino, mtimeMs } = await stat(path);
    return { path, holder, nonce: `${ino}-${Math.floor(mtimeMs)}` };
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return null;
    throw error;
  }
}

function successorPath(head: string, nonce: string): string {
  return `${head}.after-${nonce}`;
}

async function newHolder(kind: LockHolder['kind']): Promise<LockHolder> {
  return { kind, ...(await thisProcess()), takenAt: new Date().toISOString(), nonce: randomUUID() };
}

async function hasCommand(command: string): Promise<boolean> {
  const folders = command.includes('/')
    ? ['']
    : (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  for (const folder of folders) {
    try {
      await access(join(folder, command), constants.X_OK);
      return true;
    } catch (error) {
      if (!isErrno(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP', 'ENAMETOOLONG')) throw error;
    }
  }
  return false;
}

async function unlinkIfThere(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
}
