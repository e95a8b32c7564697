// The drivers of agents, bound to their hosts: which of them keeps an agent is a matter of its adapter and its channel
// (drivers/agent/host-registry.ts). tmux is looked for when the first agent needs a terminal, and not before.

import { join } from 'node:path';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../sys/errno.ts';
import { err, ok } from '../base/result.ts';
import type { Result } from '../base/result.ts';
import type { Driver } from '../engine/ports.ts';
import { acpHost } from '../drivers/agent/acp/host.ts';
import { agentDriver } from '../drivers/agent/driver.ts';
import type { AgentsDriver } from '../drivers/agent/driver.ts';
import type { RunSurroundings } from '../drivers/environment.ts';
import { headlessHost } from '../drivers/agent/headless/host.ts';
import { hostsByChannel } from '../drivers/agent/host-registry.ts';
import { keptScript, simHost } from '../drivers/agent/sim-host.ts';
import { terminalHost } from '../drivers/agent/terminal/host.ts';
import { socketPaths, privateSocket } from '../drivers/agent/tmux/private-socket.ts';
import { Tmux } from '../drivers/agent/tmux/tmux.ts';
import { SessionLedger } from '../drivers/agent/headless/session-registry.ts';
import { turnDriver } from '../drivers/agent/headless/turn-driver.ts';
import { findProgram } from '../drivers/recording-shell.ts';
import type { Adapter } from '../ir/adapter.ts';
import type { Program } from '../ir/program.ts';
import type { Config } from '../languages/config.ts';
import type { Adapters } from './adapters.ts';

export interface AgentDriversRequest {
  readonly run: RunSurroundings & { readonly binFolder: string };
  readonly adapters: Adapters;
  readonly config: Config;
  /** What simulated agents do; null: as they are asked. */
  readonly simScript: string | null;
  /** Whether what must wait for a usage limit is waited for. */
  readonly parks: boolean;
  /** Resolves when all that agents have left for the run by now has been heard. */
  readonly heard: () => Promise<void>;
}

export interface AgentDrivers {
  readonly drivers: Readonly<Record<'turn' | 'spawn' | 'attend' | 'prompt' | 'kill', Driver>>;
  readonly agents: AgentsDriver;
  /** Of headless turns, in another environment. */
  readonly turns: (environment: Readonly<Record<string, string>>) => Driver;
}

export function agentDrivers({ run, adapters, config, simScript, parks, heard }: AgentDriversRequest): AgentDrivers {
  const named = (name: string): Result<Adapter, string> => {
    const found = adapters.named(name);
    return found.ok && found.value.mailbox ? scripted(found, { runFolder: run.runFolder, script: simScript }) : found;
  };
  const ledger = new SessionLedger(run.runFolder);
  let tmux: Result<Tmux, string> | null = null;
  const hosts = hostsByChannel(
    named,
    {
      mailbox: () =>
        ok(
          simHost({
            runFolder: run.runFolder,
            command: [join(run.binFolder, 'meow'), 'sim-agent'],
            script: simScript,
            searchPath: run.environment['PATH'] ?? '',
          }),
        ),
      terminal: (adapter) => {
        tmux ??= findTmux(run, config);
        return tmux.ok ? ok(terminalHost({ ...run, adapter, ledger, tmux: tmux.value })) : tmux;
      },
      headless: (adapter) => ok(headlessHost({ ...run, adapter, ledger, heard })),
      acp: (adapter) => ok(acpHost({ ...run, adapter, heard })),
    },
    config.channel,
  );
  const agents = agentDriver({ ...run, hosts });
  const turns = (environment: Readonly<Record<string, string>>): Driver =>
    turnDriver({ ...run, environment, adapters: named, ledger, parks });
  const drivers = { turn: turns(run.environment), spawn: agents, attend: agents, prompt: agents, kill: agents };
  return { drivers, agents, turns };
}

/** Headless turns of the simulated agent read their script from the run's folder. */
function scripted(
  found: Result<Adapter, string>,
  script: { readonly runFolder: string; readonly script: string | null },
): Result<Adapter, string> {
  try {
    keptScript(script);
    return found;
  } catch (error) {
    if (isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) return err(error.message);
    throw error;
  }
}

/**
 * For the commands of a run that may have agents in terminals: a plain `tmux` in one of them reaches those terminals, be it
 * to look whether an agent is still there.
 */
export function reachingTerminals(
  run: RunSurroundings,
  { blocks }: Program,
  config: Config,
): Readonly<Record<string, string>> {
  const { environment } = run;
  const starts = Object.values(blocks).some(({ steps }) =>
    steps.some(({ act }) => act.kind === 'effect' && act.effect.kind === 'spawn'),
  );
  if (!starts || config.tmux === 'shared') return environment;
  const { TMUX: _around, ...without } = environment;
  return { ...without, TMUX_TMPDIR: socketPaths(run).folder };
}

/** An error is a sentence. */
function findTmux(run: RunSurroundings, config: Config): Result<Tmux, string> {
  const { environment } = run;
  const program = findProgram('tmux', environment['PATH'] ?? '');
  if (program === null)
    return err('there is no tmux on PATH, which agents with a terminal live in: install tmux 3.2 or later');
  if (config.tmux === 'shared') return ok(new Tmux({ program, socket: null, environment }));
  const place = privateSocket(run);
  return place.ok ? ok(new Tmux({ program, socket: place.value.socket, environment })) : place;
}
