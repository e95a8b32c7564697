// The drivers of agents, bound to their hosts. The adapter and the channel of an agent decide which host it lives in
// (drivers/agent/host-registry.ts). tmux is looked for when the first agent needs a terminal.

import { join } from 'node:path';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../sys/errno.ts';
import { err, ok } from '../base/result.ts';
import type { Result } from '../base/result.ts';
import type { Driver, RunFiles } from '../engine/ports.ts';
import { acpHost } from '../drivers/agent/acp/host.ts';
import { agentDriver } from '../drivers/agent/driver.ts';
import type { AgentsDriver } from '../drivers/agent/driver.ts';
import type { DriverContext } from '../drivers/environment.ts';
import { headlessHost } from '../drivers/agent/headless/host.ts';
import { hostsByChannel } from '../drivers/agent/host-registry.ts';
import { keptScript, SIM_SCRIPT, simHost } from '../drivers/agent/sim-host.ts';
import { terminalHost } from '../drivers/agent/terminal/host.ts';
import { privateSocket } from '../drivers/agent/tmux/private-socket.ts';
import { Tmux } from '../drivers/agent/tmux/tmux.ts';
import { SessionRegistry } from '../drivers/agent/headless/session-registry.ts';
import { turnDriver } from '../drivers/agent/headless/turn-driver.ts';
import { findProgram } from '../drivers/recording-shell.ts';
import type { Adapter } from '../ir/adapter.ts';
import type { Program } from '../ir/program.ts';
import type { Config } from '../languages/config.ts';
import type { Adapters } from './adapters.ts';

export interface AgentDriversRequest {
  readonly surroundings: DriverContext & { readonly binFolder: string };
  readonly adapters: Adapters;
  readonly config: Config;
  /** Its attachment SIM_SCRIPT says what simulated agents do. */
  readonly program: Program;
  /** Wait out usage limits instead of failing. */
  readonly parks: boolean;
  /** Resolves when all messages that are in the run's inbox by now have been handled. */
  readonly heard: () => Promise<void>;
}

export interface AgentDrivers {
  /** Of agents that live longer than one prompt. */
  readonly agents: AgentsDriver;
  /** Of headless turns whose agents have this environment. */
  readonly turns: (environment: Readonly<Record<string, string>>) => Driver;
}

export function agentDrivers(request: AgentDriversRequest): AgentDrivers {
  const { surroundings: run, adapters, config, program, parks, heard } = request;
  const script = { files: run.files, script: program.attachments[SIM_SCRIPT] ?? null };
  const named = (name: string): Result<Adapter, string> => {
    const found = adapters.named(name);
    return found.ok && found.value.mailbox ? scripted(found, script) : found;
  };
  const sessions = new SessionRegistry(run.files);
  let tmux: Result<Tmux, string> | null = null;
  const hosts = hostsByChannel(
    named,
    {
      mailbox: () =>
        ok(
          simHost({
            ...script,
            command: [join(run.binFolder, 'meow'), 'sim-agent'],
            searchPath: run.environment['PATH'] ?? '',
          }),
        ),
      terminal: (adapter) => {
        tmux ??= findTmux(run, config);
        return tmux.ok ? ok(terminalHost({ ...run, adapter, sessions, tmux: tmux.value })) : tmux;
      },
      headless: (adapter) => ok(headlessHost({ ...run, adapter, sessions, heard })),
      acp: (adapter) => ok(acpHost({ ...run, adapter, heard })),
    },
    config.channel,
  );
  return {
    agents: agentDriver({ ...run, hosts }),
    turns: (environment) => turnDriver({ ...run, environment, adapters: named, sessions, parks }),
  };
}

/** Headless turns of the simulated agent read their script from the run's folder. */
function scripted(
  found: Result<Adapter, string>,
  script: { readonly files: RunFiles; readonly script: string | null },
): Result<Adapter, string> {
  try {
    keptScript(script);
    return found;
  } catch (error) {
    if (isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) return err(error.message);
    throw error;
  }
}

/** An error is a sentence. */
function findTmux(run: DriverContext, config: Config): Result<Tmux, string> {
  const { environment } = run;
  const program = findProgram('tmux', environment['PATH'] ?? '');
  if (program === null) return err('tmux is not on PATH; agents in terminals need tmux 3.2 or later');
  if (config.tmux === 'shared') return ok(new Tmux({ program, socket: null, environment }));
  const place = privateSocket(run);
  return place.ok ? ok(new Tmux({ program, socket: place.value.socket, environment })) : place;
}
