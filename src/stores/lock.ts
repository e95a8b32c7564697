// One writer per run: a lock that is released when its holder dies.
//
// With flock(1) the kernel holds the lock on our descriptor. Node opens descriptors close-on-exec, so no child inherits it.
// The file is deleted at release, so a new holder checks that the path still names the file that it locked.
//
// Without flock(1) the file itself is the lock, and counts while the process that it names is alive. Nobody removes the lock
// of a dead holder: two who want it could each remove the other's. Instead the successor links its own file as
// `LOCK.after-NONCE`, named after the lock that it follows, and only one process can do that. The last of this chain holds the
// lock. Release unlinks the head first; a late successor in an old chain notices that.

import { spawn, type StdioOptions } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { access, chmod, constants, type FileHandle, link, stat, unlink, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { parseJson } from '../base/json.ts';
import { ABSENT, tolerateAsync } from '../sys/errors.ts';
import { openRegular } from '../sys/files.ts';
import { bootId, findProcess, startHelper } from '../sys/process.ts';

/** The process that holds a lock, identified so that neither a reused pid nor a reboot is mistaken for it. */
export interface LockHolder {
  readonly pid: number;
  /** When the process started, as the system writes it. Only for comparison. */
  readonly processStart: string;
  /** Differs after each boot. */
  readonly bootId: string;
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

/** Does not wait. The folder must exist. `flock`: the command; if it does not exist, the file itself is the lock. */
export async function takeLock(path: string, { flock = 'flock' } = {}): Promise<LockAnswer> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const answer = (await hasCommand(flock)) ? await takeByFlock(path, flock) : await takeByFile(path);
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
  const stdio: StdioOptions = ['ignore', 'ignore', 'pipe', fd];
  const child = await startHelper(() => spawn(command, ['-n', '3'], { stdio }), REFUSALS_MAX);
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (status === 0 || status === 1) return status === 0;
  throw new UsageError(
    `flock(1) failed with status ${status}: ${stderr.trim()}`,
    'the file system may not support locks: move .meow to a local disk',
  );
}

/** About ten seconds: until the run is locked, nothing of ours can end that would free what is missing. */
const REFUSALS_MAX = 10;

/** Each retry means that a holder released the lock between two of our steps. */
const TRIES_MAX = 100;

async function takeByFlock(path: string, command: string): Promise<LockAnswer | 'moved'> {
  // Not truncated: another process may hold it.
  const { O_RDWR, O_APPEND, O_CREAT } = constants;
  const file = await openRegular(path, O_RDWR | O_APPEND | O_CREAT, 0o600);
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
    await file.write(JSON.stringify(newHolder('flock')));
    drop = async () => {};
    return { kind: 'taken', lock: { kind: 'flock', release } };
  } finally {
    await drop();
  }
}

export async function liveHolder(path: string): Promise<LockHolder | null> {
  const holder = await readLockHolder(path);
  return holder !== null && isHolderAlive(holder) ? holder : null;
}

async function releaseFlock(path: string, file: FileHandle): Promise<void> {
  // Deleted while it is still locked, so it cannot be another process's file.
  if (await isSameFile(path, file)) await unlink(path);
  await file.close();
}

async function isSameFile(path: string, file: FileHandle): Promise<boolean> {
  const [there, ours] = await Promise.all([tolerateAsync(['ENOENT'], null, stat(path)), file.stat()]);
  return there?.ino === ours.ino && there.dev === ours.dev;
}

async function takeByFile(path: string): Promise<LockAnswer | 'moved'> {
  const chain = await readChain(path);
  const last = chain.at(-1);
  if (last?.holder && isHolderAlive(last.holder)) return { kind: 'held', by: last.holder };

  const own = newHolder('file');
  const target = last === undefined ? path : successorPath(path, last.nonce);
  if (!(await linkWithText(JSON.stringify(own), target, `${path}.${own.nonce}`))) return 'moved';
  // If the chain was released in the meantime, its head is gone and we hold nothing.
  const now = await readChain(path);
  if (now.at(-1)?.nonce !== own.nonce) {
    await unlink(target);
    return 'moved';
  }
  const release = async (): Promise<void> => {
    // The head first.
    for (const each of now) await unlinkIfPresent(each.path);
  };
  return { kind: 'taken', lock: { kind: 'file', release } };
}

/** Creates a file with its whole text, or not at all. False if the file exists. */
async function linkWithText(text: string, target: string, scratch: string): Promise<boolean> {
  try {
    await writeFile(scratch, text, { mode: 0o600, flag: 'wx' });
    await chmod(scratch, 0o600);
    const linked = link(scratch, target).then(() => true);
    return await tolerateAsync(['EEXIST'], false, linked);
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
    const next = await tolerateAsync(['ENOENT'], null, readLink(path));
    if (next === null) return chain;
    chain.push(next);
    path = successorPath(head, next.nonce);
  }
}

async function readLink(path: string): Promise<Link> {
  await using file = await openRegular(path, constants.O_RDONLY);
  const holder = parseHolder(await file.readFile('utf8'));
  if (holder !== null) return { path, holder, nonce: holder.nonce };
  // A crash left it empty: only the file itself identifies it.
  const { ino, mtimeMs } = await stat(path);
  return { path, holder, nonce: `${ino}-${Math.floor(mtimeMs)}` };
}

function successorPath(head: string, nonce: string): string {
  return `${head}.after-${nonce}`;
}

function newHolder(kind: LockHolder['kind']): LockHolder {
  const own = { pid: process.pid, processStart: findProcess(process.pid)?.start ?? '', bootId: bootId() };
  return { kind, ...own, takenAt: new Date().toISOString(), nonce: randomUUID() };
}

async function hasCommand(command: string): Promise<boolean> {
  const searched = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  for (const folder of command.includes('/') ? [''] : searched) {
    const isExecutable = access(join(folder, command), constants.X_OK).then(() => true);
    if (await tolerateAsync([...ABSENT, 'EACCES', 'ELOOP', 'ENAMETOOLONG'], false, isExecutable)) return true;
  }
  return false;
}

async function unlinkIfPresent(path: string): Promise<void> {
  await tolerateAsync(['ENOENT'], undefined, unlink(path));
}

export function isHolderAlive(holder: LockHolder): boolean {
  return holder.bootId === bootId() && holder.processStart === findProcess(holder.pid)?.start;
}

/** Null if the text is incomplete. */
function parseHolder(text: string): LockHolder | null {
  const holder = parseJson(text) as LockHolder | null;
  return Number.isInteger(holder?.pid) && typeof holder?.nonce === 'string' ? holder : null;
}
