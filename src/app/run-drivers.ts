// The drivers of one run, by the kind of effect. Each is made when the first effect of its kind is asked for; those of
// agents are also loaded then, so a run of shell steps never touches them.

import { once } from '../base/once.ts';
import type { Hours } from '../base/time-zone.ts';
import type { AgentsDriver } from '../drivers/agent/driver.ts';
import { socketPaths } from '../drivers/agent/tmux/setting.ts';
import { commandDriver } from '../drivers/command/command-driver.ts';
import { afterEarlierAttempts } from '../drivers/earlier-attempts.ts';
import { readDriver } from '../drivers/read-driver.ts';
import { guardSecrets } from '../drivers/guard-secrets.ts';
import { steered, type TransitionContext } from '../drivers/transition-reader.ts';
import type { Driver, Drivers } from '../engine/ports.ts';
import { syncing } from '../drivers/sync-disk.ts';
import type { EffectSpec } from '../ir/effect.ts';
import { type Block, conductorOf, type Program } from '../ir/program.ts';
import type { Text } from '../ir/text.ts';
import { crash } from '../sys/errors.ts';
import { filledText } from '../view/status.ts';
import type { AgentDriversRequest, RunSurroundings } from './agent-drivers.ts';
import { AccountLimits } from './account-limits.ts';
import { type AdmittedTurnsOptions, admittedTurns } from './admitted-turns.ts';
import { workflowLoader } from './enter-workflow.ts';
import { sharedFolder } from './project.ts';
import { conductorEnvironment, conductorRun, type ConductorRun, type ConductorRunRequest } from './conductor-run.ts';

export interface RunDriversOptions extends AgentDriversRequest, ConductorRunRequest {
  readonly surroundings: RunSurroundings;
  /** It has no records of an earlier engine. */
  readonly isNew: boolean;
  /** The quiet hours that the run keeps now; null: none. */
  readonly quiet: () => Hours | null;
  /** The folder that working directories named by answers must be in; null allows any. Absolute. */
  readonly within: string | null;
}

export interface RunDrivers {
  readonly byKind: Drivers;
  /** Environment of commands. A plain `tmux` in one of them reaches the terminals of the run's agents. */
  readonly environment: Readonly<Record<string, string>>;
  /** Null before the first effect that needs agents. */
  readonly agents: () => AgentsDriver | null;
  /** What belongs to a Conductor run besides its directory. */
  readonly conductor: () => ConductorRun;
}

export function runDrivers(options: RunDriversOptions): RunDrivers {
  const { surroundings, program, config, isNew, within } = options;
  const { files, cwd } = surroundings;
  let loadedAgents: AgentsDriver | null = null;
  const loadAgents = once(async () => {
    const loaded = (await import('./agent-drivers.ts')).agentDrivers(options);
    loadedAgents = loaded.agents;
    return loaded;
  });
  const conductor = once(() => conductorRun(options));
  const enterWorkflow = once(() => workflowLoader(options));
  const isConducted = conductorOf(program) !== null;
  const ofTurns = isConducted ? conductorEnvironment(surroundings, program) : surroundings.environment;
  const { TMUX: _, ...outsideTmux } = ofTurns;
  const isShared = config.tmux === 'shared' || !startsAgents(program);
  const environment = isShared ? ofTurns : { ...outsideTmux, TMUX_TMPDIR: socketPaths(surroundings).folder };
  const place: TransitionContext = {
    // It grows while the run enters workflows by computed paths.
    get program() {
      return options.run.state.program;
    },
    enter: (machine, path) => enterWorkflow()(machine, path),
    files,
    cwd,
    within,
  };
  const isMachine = Object.keys(program.machines).length > 0;
  const steering = (driver: Driver): Driver => {
    const read = isMachine ? steered(driver, place) : driver;
    // Files in the worktree are what an outcome is about.
    return afterEarlierAttempts(isConducted ? syncing(read, conductor().places) : read, surroundings);
  };
  const known = isNew ? entryCommands(program) : 0;
  const command = once(() => {
    const settings = { ...surroundings, environment, shell: config.shell, known };
    if (!isMachine && !limitsCommands(program)) return steering(commandDriver(settings));
    return steering(
      lazyDriver(async () => (await import('../drivers/command/limited-commands.ts')).limitedCommands(settings)),
    );
  });
  // It prepares to start many commands while the first record is written.
  if (known > 0) command();
  const admitted = once(() => admission(options));
  const agents = once(() =>
    admittedTurns(
      afterEarlierAttempts(
        lazyDriver(async () => (await loadAgents()).agents),
        surroundings,
      ),
      admitted(),
    ),
  );
  const { secrets } = surroundings;
  const guarded = (make: () => Driver): (() => Driver) =>
    secrets === undefined ? make : once(() => guardSecrets(make(), { files, secrets }));
  const guardedAgents = guarded(agents);
  return {
    byKind: {
      command: guarded(command),
      read: guarded(() => readDriver({ files, cwd })),
      turn: guarded(() =>
        admittedTurns(steering(lazyDriver(async () => (await loadAgents()).turns(ofTurns))), admitted()),
      ),
      spawn: guardedAgents,
      attend: guardedAgents,
      prompt: guardedAgents,
      kill: guardedAgents,
      git: guarded(() => conductor().drivers.git),
      inspect: guarded(() => conductor().drivers.inspect),
    },
    environment,
    agents: () => loadedAgents,
    conductor,
  };
}

/** When turns of agents may start. */
function admission({ surroundings, config, run, waits, quiet }: RunDriversOptions): AdmittedTurnsOptions {
  const { runId, files, environment } = surroundings;
  return {
    runId,
    files,
    environment,
    limits: new AccountLimits(sharedFolder(), config.money.spreadMs),
    prices: config.money.prices,
    quiet,
    waits,
    isReserved: (step) => run.state.spending.reservations.has(step),
    adapterOf({ spec }) {
      if (spec.kind === 'turn') return filledText(spec.adapter);
      return spec.kind === 'prompt' ? (run.state.agents.get(filledText(spec.agent))?.info?.adapter ?? null) : null;
    },
  };
}

/** A driver that is loaded with the first effect. Requests that arrive meanwhile are passed on in their order. */
function lazyDriver(load: () => Promise<Driver>): Driver {
  let driver: Driver | null = null;
  let waiting: ((driver: Driver) => void)[] | null = null;
  const pass = (request: (driver: Driver) => void): void => {
    if (driver !== null) return request(driver);
    if (waiting !== null) return void waiting.push(request);
    waiting = [request];
    load()
      .then((loaded) => {
        for (const each of waiting ?? []) each(loaded);
        driver = loaded;
      })
      .catch(crash);
  };
  return {
    start: (effect, answer, note) => pass((to) => to.start(effect, answer, note)),
    find: (effect, answer, note) => pass((to) => to.find(effect, answer, note)),
    stop: (effectId, how) => pass((to) => to.stop(effectId, how)),
    conclude: (effectId) => pass((to) => to.conclude?.(effectId)),
    decide: (effectId, verdict) => pass((to) => to.decide?.(effectId, verdict)),
  };
}

/** Whether a command has an idle limit, or inherits only some variables; one of a workflow that is entered later may. */
function limitsCommands({ blocks }: Program): boolean {
  const effects = Object.values(blocks).flatMap(effectsIn);
  return effects.some(
    (effect) => effect.kind === 'command' && (effect.idleMs !== undefined || effect.inherit !== undefined),
  );
}

function startsAgents({ blocks }: Program): boolean {
  return Object.values(blocks)
    .flatMap(effectsIn)
    .some(({ kind }) => kind === 'spawn');
}

function entryCommands({ blocks, entry }: Program): number {
  const block = blocks[entry];
  return block === undefined ? 0 : effectsIn(block).filter(({ kind }) => kind === 'command').length;
}

function effectsIn({ steps }: Block): readonly EffectSpec<Text>[] {
  return steps.flatMap(({ act }) => (act.kind === 'effect' ? [act.effect] : []));
}
