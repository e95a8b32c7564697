// What really acts in a test: commands that it allows, git, files, and shell commands of its simulated agents. They reach the
// run of the test as those of any run do.

import { resolve } from 'node:path';

import { ok } from '../base/errors.ts';
import { once } from '../base/once.ts';
import { limitedCommands } from '../drivers/command/limited-commands.ts';
import { type DriverContext, inRun, withoutRunVariables } from '../drivers/environment.ts';
import { resolveText } from '../drivers/outputs.ts';
import { readDriver } from '../drivers/read-driver.ts';
import type { LiveRun } from '../engine/client.ts';
import type { Driver, Drivers } from '../engine/ports.ts';
import { proofChecks } from '../ipc/decision-proof.ts';
import { addressOf, RunEndpoint } from '../ipc/run-endpoint.ts';
import { conductorOf, type Program } from '../ir/program.ts';
import { promptText } from '../ir/prompt-text.ts';
import type { Config } from '../languages/config.ts';
import { run as runProgram } from '../sim/child.ts';
import type { ProgramEnd } from '../sim/turn.ts';
import type { localRunFiles } from '../stores/local-run-files.ts';
import { systemClock } from '../sys/clock.ts';
import type { WorkflowTest } from '../testing/test-file.ts';
import type { RealParts, ShellCaller } from '../testing/world.ts';
import { conductorDirectory, conductorEnvironment, conductorRun } from './conductor-run.ts';
import { ownEnvironment } from './project.ts';
import { signersFile } from './runs.ts';
import { packageFolder } from './sources.ts';

export interface RealContext {
  readonly program: Program;
  readonly config: Config;
  readonly test: Pick<WorkflowTest, 'run' | 'on'>;
  readonly cwd: string;
  readonly files: ReturnType<typeof localRunFiles>;
  /** Distinguishes the processes of this test from those of others. */
  readonly mark: string;
}

export const RUN_ID = 'test';

function driverContext({ cwd, files, mark }: RealContext): DriverContext {
  const environment = withoutRunVariables(ownEnvironment());
  const binFolder = resolve(packageFolder(), 'bin');
  return { runId: RUN_ID, mark, files, cwd, environment, binFolder, ...addressOf(files.localPath(''), mark) };
}

/** Runs a shell command of a simulated agent. */
export function agentShell(
  context: RealContext,
  command: string,
  { agent, step, cwd }: ShellCaller,
  signal: AbortSignal,
): Promise<ProgramEnd> {
  const surroundings = driverContext(context);
  const isConductor = conductorOf(context.program) !== null;
  const base = isConductor ? conductorEnvironment(surroundings, context.program) : surroundings.environment;
  const env = { ...inRun(base, surroundings), MEOW_AGENT: agent };
  return runProgram('sh', ['-c', command], step, signal, { cwd, env });
}

/** Whether processes of the test really run. They work in its folder, and may talk to its run. */
export function actsReally({ run, on }: RealContext['test']): boolean {
  return run.length > 0 || on.some(({ actions }) => actions.some(({ kind }) => kind === 'run'));
}

export function realParts(run: LiveRun, context: RealContext): RealParts {
  const { program, config, test, cwd, files } = context;
  const surroundings = once(() => driverContext(context));
  const isConductor = conductorOf(program) !== null;
  const conductor = once(() => conductorRun({ surroundings: surroundings(), program, config, run }));
  const command = (): Driver => {
    const around = surroundings();
    const environment = isConductor ? conductorEnvironment(around, program) : around.environment;
    return limitedCommands({ ...around, environment, shell: config.shell });
  };
  const drivers: Drivers = {
    read: () => readDriver({ files, cwd }),
    ...(test.run.length > 0 ? { command } : {}),
    ...(isConductor ? { git: () => conductor().drivers.git, inspect: () => conductor().drivers.inspect } : {}),
  };
  const warn = (): void => undefined;
  const directory = isConductor
    ? [conductorDirectory({ surroundings: surroundings(), program, run, conductor, warn })]
    : [];
  return {
    drivers,
    observers: [...directory, ...(actsReally(test) ? [abandonable(endpointOf(run, surroundings(), config))] : [])],
  };
}

/** The socket of a killed engine is closed. */
function abandonable(endpoint: RunEndpoint): RealParts['observers'][number] {
  return {
    open: () => endpoint.open(),
    observe: (records, state) => endpoint.observe(records, state),
    close: () => endpoint.close(),
    abandon: () => endpoint.close(),
  };
}

function endpointOf(run: LiveRun, { files, environment, mark }: DriverContext, config: Config): RunEndpoint {
  return new RunEndpoint({
    run,
    mark,
    runFolder: files.localPath(''),
    clock: systemClock,
    proofs: proofChecks(environment, signersFile(files.localPath(''), config)),
    promptText({ prompt, expects }) {
      const text = resolveText(prompt, files);
      return text.ok ? ok(promptText(text.value, 'autonomous', expects)) : text;
    },
    hasAccepted: () => true,
    note: () => undefined,
  });
}
