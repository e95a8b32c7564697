// An engine in the background: a process in its own session that outlives the terminal. It resumes a stored run, writes its
// output to ID/engine.log, and reports once to the process that started it whether it holds the run.

import { spawn } from 'node:child_process';
import { closeSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { UsageError } from '../base/errors.ts';
import { openPrivate, readFileEnd } from '../sys/files.ts';

export type EngineReport =
  | { readonly kind: 'held' }
  | { readonly kind: 'refused'; readonly message: string; readonly hint: string | null };

/** Resolves when the engine holds the run, with its pid. `args`: flags to resume with. `inherited`: what steps inherit. */
export async function startEngine(
  runId: string,
  runFolder: string,
  meowFolder: string,
  args: readonly string[],
  inherited: Readonly<Record<string, string | undefined>> = process.env,
): Promise<number> {
  const log = join(runFolder, 'engine.log');
  const out = openPrivate(log);
  const { MEOW_RUN: _, ...environment } = inherited;
  // The state file identifies the run in any project.
  const order = ['run', '--workflow', `${runFolder}.yaml`, '--as-engine'];
  const child = spawn(process.execPath, [join(import.meta.dirname, 'meow.cjs'), ...order, ...args], {
    cwd: dirname(meowFolder),
    env: environment,
    detached: true,
    stdio: ['ignore', out, out, 'ipc'],
  });
  closeSync(out);
  const report = await new Promise<EngineReport | { readonly kind: 'ended'; readonly how: string }>((resolve) => {
    child.once('message', (message) => resolve(message as EngineReport));
    child.once('error', ({ message }) => resolve({ kind: 'ended', how: message }));
    child.once('exit', (code, signal) => {
      resolve({ kind: 'ended', how: signal === null ? `exit code ${code}` : `killed by ${signal}` });
    });
  });
  if (child.connected) child.disconnect();
  child.unref();
  if (report.kind === 'held') return child.pid ?? 0;
  if (report.kind === 'refused') throw new UsageError(report.message, report.hint);
  throw new UsageError(
    `the engine of run ${runId} failed to start: ${report.how}${lastLines(log)}`,
    `the run is stored; resume it: meow resume ${runId}`,
  );
}

/** Sends the report to the process that started this engine, if any. */
export function reportToStarter(report: EngineReport): void {
  if (process.send === undefined || !process.connected) return;
  process.send(report, () => process.connected && process.disconnect());
}

function lastLines(path: string): string {
  const text = readFileEnd(path, 4_096).trimEnd();
  return text === '' ? '' : `\n${text.split('\n').slice(-5).join('\n').replaceAll(/^/gm, '  | ')}`;
}
