// Chooses the host for an adapter: by the requested channel, else by the adapter's first.

import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import type { Adapter, Channel } from '../../ir/adapter.ts';
import { channelsOf } from '../../ir/adapter.ts';
import type { AgentHost, HostChoice, HostFor } from './host.ts';

/** The error is a sentence. */
export type AdapterNamed = (name: string) => Result<Adapter, string>;

/** `defaultChannel` applies if neither step nor adapter decides. */
export function hostsByChannel(
  adapters: AdapterNamed,
  hosts: Readonly<Record<Channel, (adapter: Adapter) => Result<AgentHost, string>>>,
  defaultChannel: Channel | null = null,
): HostFor {
  const made = new Map<string, HostChoice>();
  return (name, wanted) => {
    const found = adapters(name);
    if (!found.ok) return found;
    const adapter = found.value;
    const channel = channelFor(adapter, wanted, defaultChannel);
    if (!channel.ok) return channel;
    const key = `${channel.value} ${name}`;
    const known = made.get(key);
    if (known !== undefined) return ok(known);
    const host = hosts[channel.value](adapter);
    if (!host.ok) return host;
    const choice = {
      host: host.value,
      adapter,
      channel: channel.value,
      sessionId: sessionIdOf(adapter, channel.value),
    };
    made.set(key, choice);
    return ok(choice);
  };
}

function channelFor(adapter: Adapter, wanted: Channel | null, fallback: Channel | null): Result<Channel, string> {
  const has = channelsOf(adapter);
  if (wanted !== null) {
    if (has.includes(wanted)) return ok(wanted);
    return err(`the adapter ${adapter.name} has no channel ${wanted}: it has ${has.join(', ')}`);
  }
  const first = fallback !== null && has.includes(fallback) ? fallback : has[0];
  return first === undefined ? err(`the adapter ${adapter.name} has no channel`) : ok(first);
}

function sessionIdOf({ terminal, headless }: Adapter, channel: Channel): HostChoice['sessionId'] {
  switch (channel) {
    case 'terminal':
      return terminal?.sessionId ?? 'none';
    case 'headless':
      return headless?.sessionId ?? 'none';
    case 'acp':
      return 'told';
    case 'mailbox':
      return 'chosen';
  }
}
