// One writer per run: a lock that is released when its holder dies.
//
// With flock(1) the kernel holds the lock on our descriptor. Node opens descriptors close-on-exec, so no child inherits it.
// The file is deleted at release, so a new holder checks that the path still names the file that it locked.
//
// Without flock(1) the file itself is the lock, and counts while the process that it names is alive. Nobody removes the lock
// of a dead holder: two who want it could each remove the other's. Instead the successor links its own file as
// `LOCK.after-NONCE`, named after the lock that it follows, and only one process can do that. The last of this chain holds the
// lock. Release unlinks the head first; a late successor in an old chain notices that.

import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { access, chmod, constants, link, open, readFile, stat, unlink, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

import { present } from '../base/assert.ts';
import { UsageError } from '../base/usage-error.ts';
import { isErrno } from '../sys/errno.ts';
import { bootId, findProcess } from '../sys/process-table.ts';

/** The process that holds a lock, identified so that neither a reused pid nor a reboot is mistaken for it. */
interface ProcessIdentity {
  readonly pid: number;
  /** When the process started, as the system writes it. Only for comparison. */
  readonly processStart: string;
  /** Differs after each boot. */
  readonly bootId: string;
}

export interface LockHolder extends ProcessIdentity {
  /** `flock`: the kernel holds the lock. `file`: this text is the lock. */
  readonly kind: 'flock' | 'file';
  readonly takenAt: string;
  /** Differs each time that the lock is acquired. */
  readonly nonce: string;
}

export interface Lock {
  readonly kind: LockHolder['kind'];
  release(): Promise<void>;
}

/** `by` is null if the holder has not written its name yet. */
export type LockAnswer =
  | { readonly kind: 'taken'; readonly lock: Lock }
  | { readonly kind: 'held'; readonly by: LockHolder | null };

export interface LockOptions {
  /** The flock(1) command. If it does not exist, the file itself is the lock. */
  readonly flock?: string;
}

/** Does not wait. The folder must exist. */
export async function takeLock(path: string, options: LockOptions = {}): Promise<LockAnswer> {
  const command = options.flock ?? 'flock';
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const answer = (await hasCommand(command)) ? await takeByFlock(path, command) : await takeByFile(path);
    if (answer !== 'moved') return answer;
  }
  throw new UsageError(`the lock ${path} keeps changing its holder`, 'another engine is starting or ending: try again');
}

/** The last holder that wrote its name, dead or alive; null if there is none. */
export async function readLockHolder(path: string): Promise<LockHolder | null> {
  return (await readChain(path)).at(-1)?.holder ?? null;
}

/** Locks an open file for this process until it is closed. False if another process holds the lock. */
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
    'the file system may not support locks: move .meow to a local disk',
  );
}

/** Each retry means that a holder released the lock between two of our steps. */
const TRIES_MAX = 100;

async function takeByFlock(path: string, command: string): Promise<LockAnswer | 'moved'> {
  // Not truncated: another process may hold it.
  const file = await open(path, 'a+', 0o600);
  let drop = (): Promise<void> => file.close();
  try {
    if (!(await flockFile(file.fd, command))) return { kind: 'held', by: await liveHolder(path) };
    if (!(await isSameFile(path, file))) return 'moved';
    // An engine without flock(1) holds the lock by the text of the file alone.
    const living = await liveHolder(path);
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

/** Null if the text is that of an earlier holder. */
async function liveHolder(path: string): Promise<LockHolder | null> {
  const holder = await readLockHolder(path);
  return holder !== null && isHolderAlive(holder) ? holder : null;
}

async function releaseFlock(path: string, file: FileHandle): Promise<void> {
  // Deleted while it is still locked, so it cannot be another process's file.
  if (await isSameFile(path, file)) await unlink(path);
  await file.close();
}

async function isSameFile(path: string, file: FileHandle): Promise<boolean> {
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
  if (last?.holder && isHolderAlive(last.holder)) return { kind: 'held', by: last.holder };

  const own = await newHolder('file');
  const target = last === undefined ? path : successorPath(path, last.nonce);
  if (!(await linkWithText(JSON.stringify(own), target, `${path}.${own.nonce}`))) return 'moved';
  // If the chain was released in the meantime, its head is gone and we hold nothing.
  const now = await readChain(path);
  if (now.at(-1)?.nonce !== own.nonce) {
    await unlink(target);
    return 'moved';
  }
  return { kind: 'taken', lock: { kind: 'file', release: () => releaseChain(now) } };
}

async function releaseChain(chain: readonly Link[]): Promise<void> {
  const head = present(chain[0], 'a lock has a head');
  await unlinkIfPresent(head.path);
  for (const { path } of chain.slice(1)) await unlinkIfPresent(path);
}

/** Creates a file with its whole text, or not at all. False if the file exists. */
async function linkWithText(text: string, target: string, scratch: string): Promise<boolean> {
  try {
    await writeFile(scratch, text, { mode: 0o600, flag: 'wx' });
    await chmod(scratch, 0o600);
    await link(scratch, target);
    return true;
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    throw error;
  } finally {
    await unlinkIfPresent(scratch);
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
    // A crash left it empty: only the file itself identifies it.
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
  return { kind, ...thisProcess(), takenAt: new Date().toISOString(), nonce: randomUUID() };
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

async function unlinkIfPresent(path: string): Promise<void> {
  try {
    await unlink(path);
  } catch (error) {
    if (!isErrno(error, 'ENOENT')) throw error;
  }
}

function thisProcess(): ProcessIdentity {
  return { pid: process.pid, processStart: findProcess(process.pid)?.start ?? '', bootId: bootId() };
}

export function isHolderAlive(holder: ProcessIdentity): boolean {
  return holder.bootId === bootId() && holder.processStart === findProcess(holder.pid)?.start;
}

/** Null if the text is incomplete. */
function parseHolder(text: string): LockHolder | null {
  try {
    const holder = JSON.parse(text) as LockHolder;
    return Number.isInteger(holder.pid) && typeof holder.nonce === 'string' ? holder : null;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return null;
    throw error;
  }
}
