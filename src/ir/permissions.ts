// An adapter for what agents may do without asking (Permissions). It says how its program is told; one that has no way
// starts no agents.

import { err, ok, type Result } from '../base/errors.ts';
import { type Adapter, type Channel, channelsOf, type Permissions } from './adapter.ts';
import type { Text } from './text.ts';

/**
 * The adapter with commands for these permissions. Null: nobody chose; then agents may do everything, except those of the
 * Agent Client Protocol, whose adapter decides. The error is a sentence.
 */
export function permitted(adapter: Adapter, channel: Channel, wanted: Permissions | null): Result<Adapter, string> {
  const { terminal, headless, acp } = adapter;
  if (channel === 'acp' && acp !== null && wanted !== null) {
    return ok({ ...adapter, acp: { ...acp, permission: REQUESTS[wanted] } });
  }
  const profile = channel === 'terminal' ? terminal : channel === 'headless' ? headless : null;
  if (profile === null) return ok(adapter);
  const args = profile.permissions[wanted ?? 'all'];
  if (args === null) return err(cannotAsk(adapter, channel, wanted));
  if (channel === 'terminal' && terminal !== null) {
    const [command, resumeCommand, forkCommand] = [
      followed(terminal.command, args),
      terminal.resumeCommand && followed(terminal.resumeCommand, args),
      terminal.forkCommand && followed(terminal.forkCommand, args),
    ];
    return ok({ ...adapter, terminal: { ...terminal, command, resumeCommand, forkCommand } });
  }
  if (headless === null) return ok(adapter);
  const [command, resume, fork] = [
    followed(headless.command, args),
    headless.resume && followed(headless.resume, args),
    headless.fork && followed(headless.fork, args),
  ];
  return ok({ ...adapter, headless: { ...headless, command, resume, fork } });
}

/** How permission requests are answered. */
const REQUESTS = { ask: 'ask', edits: 'edits', all: 'allow' } as const;

function cannotAsk(adapter: Adapter, channel: Channel, wanted: Permissions | null): string {
  const able = channelsOf(adapter).find((other) => other !== channel && permitted(adapter, other, wanted).ok);
  const cure = able === undefined ? 'only permissions = "all" is possible' : `channel = "${able}" can`;
  return `${adapter.name} agents cannot ask for permission (channel "${channel}", permissions "${wanted}"): ${cure}`;
}

function followed(command: Text, args: string): Text {
  if (args === '') return command;
  return typeof command === 'string' ? `${command} ${args}` : { parts: [...command.parts, ` ${args}`] };
}
