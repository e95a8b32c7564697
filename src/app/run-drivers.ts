// The drivers of one run, by the kind of effect. Each is made when the first effect of its kind is asked for; those of
// agents and of Conductor are also loaded then, so a run of shell steps never touches them.

import type { AgentsDriver } from '../drivers/agent/driver.ts';
import { commandDriver } from '../drivers/command/command-driver.ts';
import type { CommandDriverOptions } from '../drivers/command/command-driver.ts';
import { socketPaths } from '../drivers/agent/tmux/private-socket.ts';
import type { DriverContext } from '../drivers/environment.ts';
import { readDriver } from '../drivers/read-driver.ts';
import { steered } from '../drivers/transition-reader.ts';
import type { TransitionContext } from '../drivers/transition-reader.ts';
import type { LiveRun } from '../engine/client.ts';
import type { Driver, Drivers } from '../engine/ports.ts';
import { conductorOf } from '../ir/conductor.ts';
import type { Program } from '../ir/program.ts';
import type { Config } from '../languages/config.ts';
import { crash } from '../sys/throw-uncaught.ts';
import type { Adapters } from './adapters.ts';
import type { AgentDrivers } from './agent-drivers.ts';
import { conductorEnvironment } from './conductor-places.ts';
import type { ConductorRun } from './conductor-run.ts';

export interface RunDriversOptions {
  readonly run: LiveRun;
  readonly surroundings: DriverContext & { readonly binFolder: string };
  readonly program: Program;
  readonly config: Config;
  readonly adapters: Adapters;
  /** It has no records of an earlier engine. */
  readonly isNew: boolean;
  /** The folder that working directories named by answers must be in; null allows any. Absolute. */
  readonly within: string | null;
  /** Wait out usage limits instead of failing. */
  readonly waits: boolean;
  /** Resolves when all messages that are in the run's inbox by now have been handled. */
  inboxRead(): Promise<void>;
}

export class RunDrivers {
  readonly byKind: Drivers;
  readonly #options: RunDriversOptions;
  readonly #agents = new Lazy<AgentDrivers>(() => this.#loadAgents());
  readonly #conductor = new Lazy<ConductorRun>(() => this.#loadConductor());

  constructor(options: RunDriversOptions) {
    this.#options = options;
    const { surroundings, program, config, isNew, within } = options;
    const { files, cwd } = surroundings;
    const place: TransitionContext = { program, files, cwd, within };
    const command = once(() => {
      const known = isNew ? entryCommands(program) : 0;
      const settings = { ...surroundings, environment: this.environment, shell: config.shell, known };
      return steered(limitsCommands(program) ? limitedCommandDriver(settings) : commandDriver(settings), place);
    });
    // It prepares to start many commands while the first record is written.
    if (isNew && entryCommands(program) > 0) command();
    const agents = once(() => lazyDriver(this.#agents, (loaded) => loaded.agents));
    this.byKind = {
      command,
      read: once(() => readDriver({ files, cwd })),
      turn: once(() =>
        steered(
          lazyDriver(this.#agents, (loaded) => loaded.turns(this.#turnEnvironment)),
          place,
        ),
      ),
      spawn: agents,
      attend: agents,
      prompt: agents,
      kill: agents,
      git: once(() => lazyDriver(this.#conductor, (loaded) => loaded.drivers.git)),
      inspect: once(() => lazyDriver(this.#conductor, (loaded) => loaded.drivers.inspect)),
    };
  }

  /** Of commands. A plain `tmux` in one of them reaches the terminals of the run's agents. */
  get environment(): Readonly<Record<string, string>> {
    const { surroundings, program, config } = this.#options;
    if (config.tmux === 'shared' || !startsAgents(program)) return this.#turnEnvironment;
    const { TMUX: _, ...environment } = this.#turnEnvironment;
    return { ...environment, TMUX_TMPDIR: socketPaths(surroundings).folder };
  }

  get #turnEnvironment(): Readonly<Record<string, string>> {
    const { surroundings, program } = this.#options;
    return conductorOf(program) === null ? surroundings.environment : conductorEnvironment(surroundings, program);
  }

  /** Null before the first effect that needs agents. */
  get agents(): AgentsDriver | null {
    return this.#agents.loaded?.agents ?? null;
  }

  /** What belongs to a Conductor run besides its directory. */
  conductor(): Promise<ConductorRun> {
    return this.#conductor.load();
  }

  async #loadAgents(): Promise<AgentDrivers> {
    const { surroundings, adapters, config, program, waits } = this.#options;
    const { agentDrivers } = await import('./agent-drivers.ts');
    const inboxRead = (): Promise<void> => this.#options.inboxRead();
    return agentDrivers({ surroundings, adapters, config, program, parks: waits, heard: inboxRead });
  }

  async #loadConductor(): Promise<ConductorRun> {
    const { surroundings, program, config, run } = this.#options;
    const { conductorRun } = await import('./conductor-run.ts');
    return conductorRun({ surroundings, program, config, run });
  }
}

/** Loaded once, on demand. */
class Lazy<T> {
  readonly #load: () => Promise<T>;
  #loading: Promise<T> | null = null;
  loaded: T | null = null;

  constructor(load: () => Promise<T>) {
    this.#load = load;
  }

  load(): Promise<T> {
    this.#loading ??= this.#load().then((loaded) => {
      this.loaded = loaded;
      return loaded;
    });
    return this.#loading;
  }
}

/** A driver that is loaded with the first effect. Requests that arrive meanwhile are passed on in their order. */
function lazyDriver<T>(lazy: Lazy<T>, driverOf: (loaded: T) => Driver): Driver {
  let driver: Driver | null = null;
  let waiting: ((driver: Driver) => void)[] | null = null;
  const pass = (request: (driver: Driver) => void): void => {
    if (driver !== null) return request(driver);
    if (waiting !== null) return void waiting.push(request);
    waiting = [request];
    lazy
      .load()
      .then((loaded) => {
        const made = driverOf(loaded);
        for (const each of waiting ?? []) each(made);
        driver = made;
      })
      .catch(crash);
  };
  return {
    start: (effect, answer, note) => pass((to) => to.start(effect, answer, note)),
    find: (effect, answer, note) => pass((to) => to.find(effect, answer, note)),
    prepare: (effect) => pass((to) => to.prepare?.(effect)),
    stop: (effectId, how) => pass((to) => to.stop(effectId, how)),
    conclude: (effectId) => pass((to) => to.conclude?.(effectId)),
    decide: (effectId, verdict) => pass((to) => to.decide?.(effectId, verdict)),
  };
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

function limitedCommandDriver(options: CommandDriverOptions): Driver {
  const loaded = new Lazy(() => import('../drivers/command/limited-commands.ts'));
  return lazyDriver(loaded, ({ limitedCommands }) => limitedCommands(options));
}

/** Whether a command has an idle limit, or inherits only some variables. */
function limitsCommands({ blocks }: Program): boolean {
  return Object.values(blocks).some(({ steps }) =>
    steps.some(
      ({ act }) =>
        act.kind === 'effect' &&
        act.effect.kind === 'command' &&
        (act.effect.idleMs !== undefined || act.effect.inherit !== undefined),
    ),
  );
}

function startsAgents({ blocks }: Program): boolean {
  return Object.values(blocks).some(({ steps }) =>
    steps.some(({ act }) => act.kind === 'effect' && act.effect.kind === 'spawn'),
  );
}

/** How many commands the entry block has. */
function entryCommands({ blocks, entry }: Program): number {
  const steps = blocks[entry]?.steps ?? [];
  return steps.filter(({ act }) => act.kind === 'effect' && act.effect.kind === 'command').length;
}
