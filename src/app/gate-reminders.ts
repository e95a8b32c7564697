// Reminds people of open gates with a command of their choice: when a gate opens, and repeatedly until it is decided. A
// command that fails is reported once and has no effect on the run.

import { spawn } from 'node:child_process';
import { type GateView, openGates } from '../view/status.ts';
import type { RunObserver } from './observer.ts';

export interface GateRemindersOptions {
  readonly runId: string;
  /** Where the command runs. Absolute. */
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string>>;
  /** For `sh -c`. */
  readonly command: string;
  /** Null reminds once. */
  readonly everyMs: number | null;
  /** Takes a line for people. */
  warn(line: string): void;
}

export function gateReminders(options: GateRemindersOptions): RunObserver {
  const { runId, cwd, environment, command, everyMs } = options;
  /** By gate and the moment at which it opened; null if there is nothing to repeat any more. */
  const timers = new Map<string, NodeJS.Timeout | null>();
  let warned = false;

  const warn = (why: string): void => {
    if (!warned) options.warn(`the command that reminds of gates failed: ${why}`);
    warned = true;
  };

  const remind = ({ id, step, prompt, opened_at }: GateView): void => {
    const gate = { MEOW_WORKFLOW: runId, MEOW_GATE: id, MEOW_STEP: step ?? '', MEOW_GATE_OPENED: opened_at ?? '' };
    const env = { ...environment, ...gate, MEOW_GATE_PROMPT: (prompt ?? '').slice(0, PROMPT_MAX) };
    const child = spawn('sh', ['-c', command], { cwd, env, stdio: 'ignore', detached: true });
    child.unref();
    child.once('error', (error) => warn(error.message));
    child.once('exit', (code) => {
      if (code !== 0) warn(code === null ? 'it was killed by a signal' : `exit code ${code}`);
    });
  };

  return {
    observe(_records, state) {
      const open = new Map(openGates(state).map((gate) => [`${gate.id} ${gate.opened_at}`, gate]));
      for (const [key, timer] of timers) {
        if (open.has(key) || timer === null) continue;
        clearInterval(timer);
        timers.set(key, null);
      }
      for (const [key, gate] of open) {
        if (timers.has(key)) continue;
        // A reminder does not keep the process alive.
        timers.set(key, everyMs === null ? null : setInterval(remind, everyMs, gate).unref());
        remind(gate);
      }
    },
    close() {
      for (const timer of timers.values()) if (timer !== null) clearInterval(timer);
      timers.clear();
    },
  };
}

/** Fits into any environment. */
const PROMPT_MAX = 32_000;
