// Runs that have, or may have, something to send: a file for each in `~/.meow/sending`, which outlives every crash. And the start
// of a sender that looks at them.
//
//   announce/1  A run announces itself before it starts a sender, and a sender looks at the files again after it has released its
//               lock. So a sender that ends at this moment misses nothing.
//   announce/2  A sender removes an announcement only if it is the one that it has read.

import { spawn } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { withoutRunVariables } from '../../drivers/environment.ts';
import { isJsonMap, readJsonText } from '../../base/json.ts';
import { tolerate, UNUSABLE } from '../../sys/errors.ts';
import { makeFolder, readUntrustedFile, writeJsonFile } from '../../sys/files.ts';
import { sharedFolder } from '../project.ts';

/** What a sender has to look at. `mark` differs each time that it is announced. */
export interface Announcement {
  readonly path: string;
  readonly mark: string;
  /** Folder of a run, absolute; or something that people are told without a run. */
  readonly about: { readonly run: string } | { readonly notice: LooseNotice };
}

/** About a project, and none of its runs. */
export interface LooseNotice {
  /** The same for the same notice. */
  readonly key: string;
  readonly kind: 'failed';
  /** The project's `.meow`. Absolute. */
  readonly project: string;
  readonly workflow: string | null;
  readonly text: string;
  readonly command: string | null;
  /** In milliseconds since 1970. */
  readonly since: number;
}

export function announcementFolder(): string {
  return join(sharedFolder(), 'sending');
}

export function announceRun(runFolder: string): void {
  announce(runFolder, { run: runFolder });
}

export function announceNotice(notice: LooseNotice): void {
  announce(notice.key, { notice });
}

/** Nothing is sent if the file cannot be written. */
function announce(key: string, about: Announcement['about']): void {
  const name = createHash('sha256').update(key).digest('hex').slice(0, 20);
  tolerate(UNUSABLE, undefined, () => {
    makeFolder(announcementFolder());
    writeJsonFile(join(announcementFolder(), `${name}.json`), { ...about, mark: randomUUID() });
  });
}

const BYTES_MAX = 100_000;

export function announcements(): readonly Announcement[] {
  const folder = announcementFolder();
  const names = tolerate(UNUSABLE, [], () => readdirSync(folder)).filter((name) => /^[0-9a-f]{20}\.json$/.test(name));
  return names.flatMap((name) => {
    const found = readAnnouncement(join(folder, name));
    return found === null ? [] : [found];
  });
}

function readAnnouncement(path: string): Announcement | null {
  const read = readJsonText(readUntrustedFile(path, BYTES_MAX)?.text ?? '');
  if (!read.ok || !isJsonMap(read.value)) return null;
  const { run, notice, mark } = read.value;
  if (typeof mark !== 'string') return null;
  if (typeof run === 'string') return { path, mark, about: { run } };
  // Only this program writes them, and only this user can.
  return isJsonMap(notice) ? { path, mark, about: { notice: notice as unknown as LooseNotice } } : null;
}

/** Attempts to send what belongs to no run. */
export function attemptsFile({ path }: Announcement): string {
  return `${path}l`;
}

/** announce/2 */
export function removeAnnouncement(announcement: Announcement): void {
  const { path, mark } = announcement;
  if (readAnnouncement(path)?.mark !== mark) return;
  for (const file of [path, attemptsFile(announcement)])
    tolerate(UNUSABLE, undefined, () => rmSync(file, { force: true }));
}

/** A process of its own, which ends when nothing is left to send. One that is not needed ends at once. */
export function startSender(environment: Readonly<Record<string, string>>): void {
  const program = join(import.meta.dirname, 'meow.cjs');
  const child = spawn(process.execPath, [program, 'sender'], {
    cwd: '/',
    // It belongs to no run.
    env: withoutRunVariables(environment),
    detached: true,
    stdio: 'ignore',
  });
  // The announcement stays: the next run starts another one.
  child.once('error', () => {});
  child.unref();
}
