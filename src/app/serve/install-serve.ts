// `meow serve` as a service of the user that starts with the session: a unit of systemd, or an agent of launchd.

import { spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

import { UsageError } from '../../base/errors.ts';
import { readLockHolder, isHolderAlive } from '../../stores/lock.ts';
import { makeFolder, writePrivate } from '../../sys/files.ts';
import { sharedFolder } from '../project.ts';
import { packageFolder } from '../sources.ts';

const NAME = 'meow-serve';
const LABEL = 'dev.meow.serve';

export interface ListenAddress {
  readonly host: string;
  /** 0: any. */
  readonly port: number;
}

interface Manager {
  readonly path: string;
  readonly text: (address: ListenAddress) => string;
  readonly start: readonly string[];
  readonly stop: readonly string[];
}

function manager(): Manager {
  if (process.platform === 'darwin') {
    const path = join(homedir(), 'Library/LaunchAgents', `${LABEL}.plist`);
    return {
      path,
      text: plistText,
      start: ['launchctl', 'load', '-w', path],
      stop: ['launchctl', 'unload', '-w', path],
    };
  }
  const unit = `${NAME}.service`;
  return {
    path: join(homedir(), '.config/systemd/user', unit),
    text: unitText,
    start: ['systemctl', '--user', 'enable', '--now', unit],
    stop: ['systemctl', '--user', 'disable', '--now', unit],
  };
}

/** Returns a line for people. */
export function installService(address: ListenAddress): string {
  const { path, text, start } = manager();
  makeFolder(resolve(path, '..'));
  writePrivate(path, text(address));
  call(start, `${path} is written, but cannot be started`);
  return `installed and started ${path}`;
}

/** Returns a line for people. */
export function uninstallService(): string {
  const { path, stop } = manager();
  if (!existsSync(path)) throw new UsageError(`${path} does not exist`, 'meow serve is not installed');
  call(stop, `${path} cannot be stopped`);
  rmSync(path);
  return `stopped and removed ${path}`;
}

export async function serviceStatus(): Promise<{ readonly text: string; readonly isRunning: boolean }> {
  const { path } = manager();
  const holder = await readLockHolder(join(sharedFolder(), 'serve.lock'));
  const isRunning = holder !== null && isHolderAlive(holder);
  const running = isRunning ? `running (pid ${holder.pid}, since ${holder.takenAt})` : 'not running';
  return { text: `${running}; ${existsSync(path) ? `installed: ${path}` : 'not installed'}`, isRunning };
}

function call([program = '', ...args]: readonly string[], problem: string): void {
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'ignore', 'pipe'] });
  if (status === 0) return;
  const why = error?.message ?? (stderr.trim() === '' ? `exit code ${status}` : stderr.trim());
  throw new UsageError(`${problem}: ${program}: ${why}`, `run it yourself: ${[program, ...args].join(' ')}`);
}

function commandLine({ host, port }: ListenAddress): readonly string[] {
  return [process.execPath, join(packageFolder(), 'dist/meow.cjs'), 'serve', '--listen', host, '--port', String(port)];
}

/** The PATH of the installing shell: agents are found there. */
function unitText(address: ListenAddress): string {
  const words = commandLine(address).map(
    (word) => `"${word.replaceAll(/["\\]/g, '\\$&').replaceAll(/[%$]/g, '$&$&')}"`,
  );
  return `[Unit]
Description=MEOW: resumes runs, starts schedules, answers hooks

[Service]
ExecStart=${words.join(' ')}
Environment="PATH=${process.env['PATH'] ?? ''}"
Restart=on-failure
SuccessExitStatus=143
KillMode=process

[Install]
WantedBy=default.target
`;
}

function plistText(address: ListenAddress): string {
  const text = (value: string): string =>
    `<string>${value.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')}</string>`;
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key>${text(LABEL)}
  <key>ProgramArguments</key><array>${commandLine(address).map(text).join('')}</array>
  <key>EnvironmentVariables</key><dict><key>PATH</key>${text(process.env['PATH'] ?? '')}</dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><true/>
  <key>AbandonProcessGroup</key><true/>
</dict>
</plist>
`;
}
