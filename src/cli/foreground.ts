// A run in the foreground of this process: signals reach it, and the report of a bug names it.

import { constants } from 'node:os';

import { FORCE_SIGNAL, PAUSE_SIGNAL, STOP_SIGNAL } from '../app/engine-signals.ts';
import type { LiveRun, RunState } from '../app/observer.ts';
import type { SessionOptions } from '../app/run-session.ts';
import { isHelperWaiting, onShortage } from '../sys/process.ts';
import { warn, workingOn } from './output.ts';

/** `session` starts or resumes the run with these options. Resolves when the run has ended. */
export async function runInForeground(
  options: SessionOptions,
  session: (options: SessionOptions) => Promise<RunState>,
): Promise<{ readonly state: RunState; readonly signalStatus: number | null }> {
  const { reporter } = options;
  onShortage((line) => reporter.warn(line));
  const signals = new Signals(
    (line) => reporter.note(line),
    () => reporter.abandon(),
  );
  try {
    const state = await session({
      ...options,
      onHeld(run) {
        workingOn(run.id);
        options.onHeld?.(run);
        signals.directTo(run);
      },
    });
    workingOn(null);
    return { state, signalStatus: signals.exitStatus };
  } finally {
    signals.close();
  }
}

// Signals to a run in the foreground. The first one stops the run gracefully, a second of the same kind kills its commands,
// a third exits at once; the run can be resumed from its journal. Signals of different kinds do not add up, because closing
// a session sends TERM and HUP together. Repeated HUPs count once, because nobody types them.
//
// `meow stop` has its own signals (app/engine-signals.ts), because asking twice does not mean force.

/** Who stopped the run, as the journal says it. */
const SENDERS = {
  SIGINT: 'Ctrl-C',
  SIGTERM: 'SIGTERM',
  SIGHUP: 'SIGHUP, because its terminal was closed',
  [STOP_SIGNAL]: 'meow stop',
  [FORCE_SIGNAL]: 'meow stop --force',
} as const;

type StopSignal = keyof typeof SENDERS;

/** Signals whose repetition escalates. */
const INSISTENT: readonly StopSignal[] = ['SIGINT', 'SIGTERM'];

export class Signals {
  #run: LiveRun | null = null;
  readonly #received: StopSignal[] = [];
  #forced = false;
  readonly #reply: (line: string) => void;
  readonly #leave: () => void;
  readonly #listener = (signal: NodeJS.Signals): void => this.#take(signal as StopSignal);
  #isPaused = false;
  readonly #onPause = (): void => this.#pause();

  /** Signals that arrive before `directTo` are kept for the run. `leave` is called before an abrupt exit. */
  constructor(print: (line: string) => void = warn, leave: () => void = () => {}) {
    this.#reply = print;
    this.#leave = leave;
    for (const signal of Object.keys(SENDERS)) process.on(signal, this.#listener);
    process.on(PAUSE_SIGNAL, this.#onPause);
  }

  directTo(run: LiveRun): void {
    this.#run = run;
    for (const signal of this.#received.splice(0)) this.#take(signal);
    if (this.#isPaused) this.#pause();
  }

  close(): void {
    for (const signal of Object.keys(SENDERS)) process.off(signal, this.#listener);
    process.off(PAUSE_SIGNAL, this.#onPause);
  }

  /** 128 plus the number of the first signal, where `meow stop` counts as SIGTERM; null if none arrived. */
  get exitStatus(): number | null {
    const [first] = this.#received;
    if (first === undefined) return null;
    return 128 + constants.signals[first === STOP_SIGNAL || first === FORCE_SIGNAL ? 'SIGTERM' : first];
  }

  #pause(): void {
    this.#isPaused = true;
    if (this.#run === null) return;
    this.#reply('pausing: running steps may finish, and nothing new starts');
    this.#run.pause('paused by a person');
  }

  #take(signal: StopSignal): void {
    this.#received.push(signal);
    const times = INSISTENT.includes(signal) ? this.#received.filter((other) => other === signal).length : 1;
    if (this.#run === null) {
      // Nothing has started yet, so a second signal exits at once, and so does the first if the system has no room for us.
      if (times > 1 || isHelperWaiting()) process.exit(this.exitStatus ?? 1);
      return;
    }
    this.#forced ||= signal === FORCE_SIGNAL || times > 1;
    if (times > 2) {
      this.#leave();
      warn(`meow: left at once; its commands keep running. Resume it: meow resume ${this.#run.id}`);
      process.exit(this.exitStatus ?? 1);
    }
    this.#reply(reply(signal, this.#forced, this.#run.state.phase === 'cleaning'));
    this.#run.stop(SENDERS[signal], this.#forced);
  }
}

function reply(signal: StopSignal, force: boolean, cleaning: boolean): string {
  if (force) return `killing ${cleaning ? 'the cleanup script' : 'running commands'}`;
  const again = AGAIN[signal] ?? 'meow stop --force kills';
  if (cleaning) return `the cleanup script is running, for at most a minute; ${again} it`;
  return `stopping: commands have a few seconds; ${again} them`;
}

const AGAIN: Readonly<Partial<Record<StopSignal, string>>> = {
  SIGINT: 'press Ctrl-C again to kill',
  SIGTERM: 'a second SIGTERM kills',
};
