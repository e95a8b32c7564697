// What a signal does to a run in the foreground. The first asks it to stop; a second of the same kind stops it at once, a
// third leaves it as it is: then the journal is all there is, and the run can be resumed. Signals of different kinds do
// not add up: whoever ends a session sends TERM and HUP in one breath. Of HUP all are one, for nobody types them.
//
// `meow stop` has signals of its own, so that the journal can tell it from whoever else ends processes; and two of them,
// for the same signal sent twice may arrive as one, and to ask twice is not to ask for force.

import { constants } from 'node:os';

import type { LiveRun } from '../app/observer.ts';
import { complain } from './output.ts';

export const STOP_SIGNAL = 'SIGUSR2';
export const FORCE_SIGNAL = 'SIGIO';

/** By whom a run was stopped, as its journal tells it. */
const SENDERS = {
  SIGINT: 'Ctrl-C',
  SIGTERM: 'SIGTERM',
  SIGHUP: 'SIGHUP, for its terminal was closed',
  [STOP_SIGNAL]: 'meow stop',
  [FORCE_SIGNAL]: 'meow stop --force',
} as const;

type StopSignal = keyof typeof SENDERS;

/** Those whose repetition means impatience. */
const INSISTENT: readonly StopSignal[] = ['SIGINT', 'SIGTERM'];

export class Signals {
  #run: LiveRun | null = null;
  #received: StopSignal[] = [];
  #forced = false;
  readonly #say: (line: string) => void;
  readonly #leave: () => void;
  readonly #listener = (signal: NodeJS.Signals): void => this.#take(signal as StopSignal);

  /** From here on signals are kept for the run that is about to begin. `leave`: to be done before an abrupt end. */
  constructor(say: (line: string) => void = complain, leave: () => void = () => {}) {
    this.#say = say;
    this.#leave = leave;
    for (const signal of Object.keys(SENDERS)) process.on(signal, this.#listener);
  }

  directTo(run: LiveRun): void {
    this.#run = run;
    const kept = this.#received;
    this.#received = [];
    for (const signal of kept) this.#take(signal);
  }

  close(): void {
    for (const signal of Object.keys(SENDERS)) process.off(signal, this.#listener);
  }

  /**
   * The exit status of a run that was stopped: 128 and the number of the first signal, where `meow stop` counts as SIGTERM.
   * Null where there was none.
   */
  get exitStatus(): number | null {
    const [first] = this.#received;
    if (first === undefined) return null;
    return 128 + constants.signals[first === STOP_SIGNAL || first === FORCE_SIGNAL ? 'SIGTERM' : first];
  }

  #take(signal: StopSignal): void {
    this.#received.push(signal);
    const times = INSISTENT.includes(signal) ? this.#received.filter((other) => other === signal).length : 1;
    if (this.#run === null) {
      // Nothing has been started yet; who asks twice will not wait for it.
      if (times > 1) process.exit(this.exitStatus ?? 1);
      return;
    }
    this.#forced ||= signal === FORCE_SIGNAL || times > 1;
    if (times > 2) {
      this.#leave();
      complain(`meow: left at once; what is running goes on. Take it up again: meow resume ${this.#run.id}`);
      process.exit(this.exitStatus ?? 1);
    }
    this.#say(reply(signal, this.#forced, this.#run.state.phase === 'cleaning'));
    this.#run.stop(SENDERS[signal], this.#forced);
  }
}

function reply(signal: StopSignal, force: boolean, cleaning: boolean): string {
  if (force) return `killing ${cleaning ? 'the cleanup script' : 'what is running'}`;
  const again =
    signal === 'SIGINT'
      ? 'press Ctrl-C again to kill'
      : signal === 'SIGTERM'
        ? 'a second SIGTERM kills'
        : 'meow stop --force kills';
  if (cleaning) return `the cleanup script runs, a minute at most; ${again} it`;
  return `stopping: commands have a few seconds; ${again} them`;
}
