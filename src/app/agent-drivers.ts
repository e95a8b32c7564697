// The drivers of agents, bound to their hosts. The adapter and the channel of an agent decide which host it lives in
// (drivers/agent/host.ts). tmux is looked for when the first agent needs a terminal.

import { join } from 'node:path';

import { err, ok, type Result } from '../base/errors.ts';
import { acpHost } from '../drivers/agent/acp/host.ts';
import { agentDriver, type AgentsDriver } from '../drivers/agent/driver.ts';
import { headlessHost } from '../drivers/agent/headless/host.ts';
import { SessionRegistry } from '../drivers/agent/headless/sessions.ts';
import type { Overspends } from '../drivers/agent/headless/turn.ts';
import { turnDriver } from '../drivers/agent/headless/turn-driver.ts';
import { hostsByChannel } from '../drivers/agent/host.ts';
import { keptScript, SIM_SCRIPT, simHost } from '../drivers/agent/sim-host.ts';
import { terminalHost } from '../drivers/agent/terminal/host.ts';
import { privateSocket } from '../drivers/agent/tmux/setting.ts';
import { Tmux } from '../drivers/agent/tmux/tmux.ts';
import type { DriverContext } from '../drivers/environment.ts';
import { findProgram } from '../drivers/recording-shell.ts';
import { unscriptedAnswer } from '../drivers/transition-reader.ts';
import type { Driver } from '../engine/ports.ts';
import { type Adapter, type Channel, permitted } from '../ir/adapter.ts';
import type { Effect } from '../ir/effect.ts';
import { priceOf } from '../ir/output.ts';
import type { Program } from '../ir/program.ts';
import type { Config } from '../languages/config.ts';
import { isErrno, UNUSABLE } from '../sys/errors.ts';
import type { Adapters } from './adapters.ts';
import type { LiveRun } from './observer.ts';
import { withComputedPrice } from './turn-prices.ts';

export type RunSurroundings = DriverContext & { readonly binFolder: string };

export interface AgentDriversRequest {
  readonly run: LiveRun;
  readonly surroundings: RunSurroundings;
  readonly adapters: Adapters;
  readonly config: Config;
  /** Its attachment SIM_SCRIPT says what simulated agents do. */
  readonly program: Program;
  /** Wait out usage limits instead of failing. */
  readonly waits: boolean;
  /** Resolves when all messages that are in the run's inbox by now have been handled. */
  readonly inboxRead: () => Promise<void>;
}

export interface AgentDrivers {
  /** Driver of agents that live longer than one prompt. */
  readonly agents: AgentsDriver;
  /** Driver of headless turns whose agents have this environment. */
  readonly turns: (environment: Readonly<Record<string, string>>) => Driver;
}

export function agentDrivers(request: AgentDriversRequest): AgentDrivers {
  const { surroundings: run, adapters, config, program, waits: parks, inboxRead: heard } = request;
  const script = { files: run.files, script: program.attachments[SIM_SCRIPT] ?? null };
  const named = (name: string): Result<Adapter, string> => {
    const found = adapters.named(name);
    try {
      // Headless turns of the simulated agent read their script from the run's folder.
      if (found.ok && found.value.mailbox) keptScript(script);
      return found;
    } catch (error) {
      if (isErrno(error, ...UNUSABLE)) return err(error.message);
      throw error;
    }
  };
  const allowed = (adapter: Adapter, channel: Channel): Result<Adapter, string> =>
    permitted(adapter, channel, run.permissions ?? null);
  const sessions = new SessionRegistry(run.files);
  const overspends: Overspends = ({ step, adapter, model }, usage) => {
    const most = request.run.state.spending.reservations.get(step)?.mostUsd;
    const usd = priceOf(withComputedPrice(usage, config.money.prices, adapter, model));
    return most !== undefined && usd !== null && usd > most;
  };
  const searchPath = run.environment['PATH'] ?? '';
  let tmux: Result<Tmux, string> | null = null;
  const hosts = hostsByChannel(
    named,
    {
      mailbox: () => ok(simHost({ ...script, command: [join(run.binFolder, 'meow'), 'sim-agent'], searchPath })),
      terminal: (named) => {
        tmux ??= findTmux(run, config);
        const adapter = allowed(named, 'terminal');
        if (!tmux.ok) return tmux;
        if (!adapter.ok) return adapter;
        return ok(terminalHost({ ...run, adapter: adapter.value, sessions, tmux: tmux.value }));
      },
      headless: (named) => {
        const adapter = allowed(named, 'headless');
        return adapter.ok ? ok(headlessHost({ ...run, adapter: adapter.value, sessions, heard, overspends })) : adapter;
      },
      acp: (named) => {
        const adapter = allowed(named, 'acp');
        return adapter.ok ? ok(acpHost({ ...run, adapter: adapter.value, heard })) : adapter;
      },
    },
    config.channel,
  );
  const forTurns = (name: string): Result<Adapter, string> => {
    const adapter = named(name);
    return adapter.ok ? permitted(adapter.value, 'headless', run.permissions ?? null, []) : adapter;
  };
  const unscripted = (effect: Effect, prompt: string): string | null => {
    const { lanes, steps, program: grown } = request.run.state;
    const step = steps.get(effect.step);
    const visit = step === undefined ? undefined : lanes.get(effect.lane)?.visitsOf.get(step.definition);
    return unscriptedAnswer(effect, { prompt, visit: visit ?? 1 }, grown);
  };
  return {
    agents: agentDriver({ ...run, hosts }),
    turns: (environment) =>
      turnDriver({ ...run, environment, adapters: forTurns, sessions, parks, unscripted, overspends }),
  };
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
