// Tells people of gates that are open, by a command that they chose: once when a gate is asked for, and again and again while
// nobody decides. Whether the command works is its own matter; that it does not is said once.

import { spawn } from 'node:child_process';
import type { RunState } from '../kernel/state.ts';
import type { GatesConfig } from '../languages/config.ts';
import { openGates } from '../view/status.ts';
import type { GateView } from '../view/status.ts';

export interface GateRemindersOptions {
  readonly runId: string;
  /** Where the command runs. Absolute. */
  readonly cwd: string;
  readonly config: GatesConfig;
  readonly environment: Readonly<Record<string, string>>;
  note(line: string): void;
}

export class GateReminders {
  readonly #options: GateRemindersOptions;
  /** By the gate and the moment at which it was asked for. */
  readonly #told = new Map<string, NodeJS.Timeout | null>();
  #complained = false;

  constructor(options: GateRemindersOptions) {
    this.#options = options;
  }

  seen(state: RunState): void {
    if (this.#options.config.remind === null) return;
    const open = new Map(openGates(state).map((gate) => [`${gate.id} ${gate.opened_at}`, gate]));
    for (const [key, timer] of this.#told) {
      if (open.has(key) || timer === null) continue;
      clearInterval(timer);
      this.#told.set(key, null);
    }
    for (const [key, gate] of open) {
      if (this.#told.has(key)) continue;
      const { remindEveryMs } = this.#options.config;
      // Nobody is kept from going by a reminder.
      const timer = remindEveryMs === null ? null : setInterval(() => this.#remind(gate), remindEveryMs).unref();
      this.#told.set(key, timer);
      this.#remind(gate);
    }
  }

  close(): void {
    for (const timer of this.#told.values()) if (timer !== null) clearInterval(timer);
    this.#told.clear();
  }

  #remind({ id, step, prompt, opened_at }: GateView): void {
    const { runId, cwd, config, environment } = this.#options;
    const told = { MEOW_WORKFLOW: runId, MEOW_GATE: id, MEOW_STEP: step ?? '', MEOW_GATE_OPENED: opened_at ?? '' };
    const command = spawn('sh', ['-c', config.remind ?? ''], {
      cwd,
      env: { ...environment, ...told, MEOW_GATE_PROMPT: (prompt ?? '').slice(0, PROMPT_MAX) },
      stdio: 'ignore',
      detached: true,
    });
    command.unref();
    command.once('error', (error) => this.#complain(error.message));
    command.once('exit', (code) => {
      if (code !== 0) this.#complain(`it ended with ${code ?? 'a signal'}`);
    });
  }

  #complain(why: string): void {
    if (!this.#complained) this.#options.note(`the command that reminds of gates does not work: ${why}`);
    this.#complained = true;
  }
}

/** What an environment can surely hold. */
const PROMPT_MAX = 32_000;
