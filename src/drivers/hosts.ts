// Which host keeps the agents of which adapter.

import { own } from '../base/json.ts';
import { err, ok } from '../base/result.ts';
import type { AgentHost, HostFor } from './agent-host.ts';

export function hostsByAdapter(hosts: Readonly<Record<string, AgentHost>>): HostFor {
  return (adapter) => {
    const host = own(hosts, adapter);
    if (host !== undefined) return ok(host);
    return err(`there is no adapter ${JSON.stringify(adapter)}: there is ${Object.keys(hosts).join(', ')}`);
  };
}
