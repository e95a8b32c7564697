// An engine in the background: a process of its own, in a session of its own, that outlives the terminal. It resumes a run
// that is on disk already, writes to ID/engine.log what a terminal would have shown, and tells the one who started it
// once whether it holds the run.

import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { UsageError } from '../base/usage-error.ts';

/** What the engine tells: plain data, for it comes from another process. */
export type EngineReport =
  | { readonly kind: 'held' }
  | { readonly kind: 'refused'; readonly message: string; readonly hint: string | null };

/** Resolves when the engine holds the run, with its pid. `args`: flags to resume with. */
export async function startEngine(
  runId: string,
  runFolder: string,
  meowFolder: string,
  args: readonly string[],
): Promise<number> {
  const log = join(runFolder, 'engine.log');
  const out = openSync(log, 'a', 0o600);
  const { MEOW_RUN: _, ...environment } = process.env;
  // By its state file, which names the run wherever it is kept.
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
      resolve({ kind: 'ended', how: signal === null ? `it ended with status ${code}` : `it was ended by ${signal}` });
    });
  });
  if (child.connected) child.disconnect();
  child.unref();
  switch (report.kind) {
    case 'held':
      return child.pid ?? 0;
    case 'refused':
      throw new UsageError(report.message, report.hint);
    case 'ended':
      throw new UsageError(
        `the engine of run ${runId} could not start: ${report.how}${lastLines(log)}`,
        `the run is kept; go on with it: meow resume ${runId}`,
      );
  }
}

/** From the engine to the one who started it, if anyone did. */
export function reportToStarter(report: EngineReport): void {
  if (process.send === undefined || !process.connected) return;
  process.send(report, () => process.connected && process.disconnect());
}

function lastLines(path: string): string {
  const text = readFileSync(path, 'utf8').trimEnd();
  return text === '' ? '' : `\n${text.split('\n').slice(-5).join('\n').replaceAll(/^/gm, '  | ')}`;
}
