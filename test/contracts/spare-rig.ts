// Commands under test that are prepared before they are asked for, each in a shell that was ready before it (launcher.ts).

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { present } from '../../src/base/assert.ts';
import type { CommandDriverOptions } from '../../src/drivers/command/command-driver.ts';
import { findLauncher } from '../../src/drivers/command/launcher.ts';
import type { Launcher } from '../../src/drivers/command/launcher.ts';
import type { Driver } from '../../src/engine/ports.ts';
import type { Effect } from '../../src/ir/effect.ts';
import { CommandRig } from './driver-command-rig.ts';
import { start } from './driver.ts';

const ENVIRONMENT = { PATH: process.env['PATH'] ?? '' };

export async function readyLauncher(environment: Readonly<Record<string, string>> = ENVIRONMENT): Promise<Launcher> {
  const launcher = present(findLauncher(environment), 'there is no perl here');
  while (!launcher.ready) await setImmediate();
  return launcher;
}

/** The spare of a launcher that has nothing else at work. */
async function spareOf(launcher: Launcher): Promise<number> {
  for (;;) {
    const { stdout } = spawnSync('ps', ['-o', 'pid=,comm=', '--ppid', String(launcher.pid)], { encoding: 'utf8' });
    const [, pid = ''] = /^\s*(\d+) sh$/m.exec(stdout) ?? [];
    if (pid !== '') return Number(pid);
    await setImmediate();
  }
}

export class SpareRig extends CommandRig {
  readonly launcher: Launcher;
  /** The process that each effect was prepared in. */
  readonly prepared = new Map<string, number>();
  #isWarm = false;

  /** A launcher makes spares once it knows of what kind. */
  static async setUp(options: Partial<CommandDriverOptions> = {}): Promise<SpareRig> {
    const launcher = await readyLauncher(options.environment);
    const rig = new SpareRig(launcher, options);
    await rig.#warm();
    return rig;
  }

  private constructor(launcher: Launcher, options: Partial<CommandDriverOptions>) {
    super({ ...options, launcher });
    this.launcher = launcher;
    this.driver = this.#preparing(this.driver);
  }

  override nextLife(): void {
    super.nextLife();
    this.driver = this.#preparing(this.driver);
  }

  async #warm(): Promise<void> {
    const effect = this.command('true');
    this.driver.prepare?.(effect);
    await start(this, effect);
    this.#isWarm = true;
  }

  /** The shell that is ready for the next command. */
  spare(): Promise<number> {
    return spareOf(this.launcher);
  }

  /** Resolves when it waits for the word, or the process that was to become it is gone. */
  async prepare(effect: Effect): Promise<void> {
    const spare = await this.spare();
    this.prepared.set(effect.id, spare);
    this.driver.prepare?.(effect);
    while (!existsSync(this.stepFile(effect, 'stderr')) && isThere(spare)) await setImmediate();
  }

  /** Whether it ran in the shell that it was prepared in. */
  ranInSpare(effect: Effect): boolean {
    const [pid] = readFileSync(this.stepFile(effect, 'status'), 'utf8').split(' ');
    return Number(pid) === this.prepared.get(effect.id);
  }

  /** What is asked of an effect waits until it is prepared. */
  #preparing(driver: Driver): Driver {
    const ready = new Map<string, Promise<void>>();
    const after = (id: string, act: () => void): void => void (ready.get(id) ?? Promise.resolve()).then(act);
    return {
      prepare: (effect) => driver.prepare?.(effect),
      start: (effect, answer, note) => {
        const isKnown = ready.has(effect.id) || existsSync(this.stepFile(effect, 'stdout'));
        if (this.#isWarm && !isKnown) ready.set(effect.id, this.prepare(effect));
        after(effect.id, () => driver.start(effect, answer, note));
      },
      find: (effect, answer, note) => after(effect.id, () => driver.find(effect, answer, note)),
      stop: (id, how) => after(id, () => driver.stop(id, how)),
    };
  }
}

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
