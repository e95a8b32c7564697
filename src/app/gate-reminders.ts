// Reminds people of open gates with a command of their choice: when a gate opens, and repeatedly until it is decided. A
// command that fails is reported once and has no effect on the run.

import { spawn } from 'node:child_process';
import { openGates } from '../view/status.ts';
import type { GateView } from '../view/status.ts';
import type { JournalRecord, RunObserver, RunState } from './observer.ts';

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

export class GateReminders implements RunObserver {
  readonly #options: GateRemindersOptions;
  /** By gate and the moment at which it opened; null if there is nothing to repeat any more. */
  readonly #timers = new Map<string, NodeJS.Timeout | null>();
  #warned = false;

  constructor(options: GateRemindersOptions) {
    this.#options = options;
  }

  observe(_records: readonly JournalRecord[], state: RunState): void {
    const open = new Map(openGates(state).map((gate) => [`${gate.id} ${gate.opened_at}`, gate]));
    for (const [key, timer] of this.#timers) {
      if (open.has(key) || timer === null) continue;
      clearInterval(timer);
      this.#timers.set(key, null);
    }
    for (const [key, gate] of open) {
      if (this.#timers.has(key)) continue;
      const { everyMs } = this.#options;
      // A reminder does not keep the process alive.
      this.#timers.set(key, everyMs === null ? null : setInterval(() => this.#remind(gate), everyMs).unref());
      this.#remind(gate);
    }
  }

  close(): void {
    for (const timer of this.#timers.values()) if (timer !== null) clearInterval(timer);
    this.#timers.clear();
  }

  #remind({ id, step, prompt, opened_at }: GateView): void {
    const { runId, cwd, command, environment } = this.#options;
    const gate = { MEOW_WORKFLOW: runId, MEOW_GATE: id, MEOW_STEP: step ?? '', MEOW_GATE_OPENED: opened_at ?? '' };
    const child = spawn('sh', ['-c', command], {
      cwd,
      env: { ...environment, ...gate, MEOW_GATE_PROMPT: (prompt ?? '').slice(0, PROMPT_MAX) },
      stdio: 'ignore',
      detached: true,
    });
    child.unref();
    child.once('error', (error) => this.#warn(error.message));
    child.once('exit', (code) => {
      if (code !== 0) this.#warn(code === null ? 'it was killed by a signal' : `exit code ${code}`);
    });
  }

  #warn(why: string): void {
    if (!this.#warned) this.#options.warn(`the command that reminds of gates failed: ${why}`);
    this.#warned = true;
  }
}

/** Fits into any environment. */
const PROMPT_MAX = 32_000;
