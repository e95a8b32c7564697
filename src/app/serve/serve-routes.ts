// What `meow serve` answers besides the page: hooks and metrics.

import type { IncomingMessage, ServerResponse } from 'node:http';

import type { Hooks } from './hooks.ts';
import type { Metrics } from './metrics.ts';

/** The HTTP server, which another layer provides. */
export interface Listening {
  readonly url: string;
  readonly port: number;
  /** Valid until the server ends. */
  readonly token: string;
  close(): Promise<void>;
}

/** True if the request is answered here. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => boolean;

const HOOKS = '/hooks/';

export function serveRoutes(hooks: Pick<Hooks, 'handle'>, metrics: Pick<Metrics, 'handle'>): Handler {
  return (request, response) => {
    const [path = '/'] = (request.url ?? '/').split('?');
    if (path === '/metrics') {
      metrics.handle(request, response).catch(() => response.destroy());
      return true;
    }
    if (!path.startsWith(HOOKS)) return false;
    // A caller that goes away is not our problem.
    hooks.handle(path.slice(HOOKS.length), request, response).catch(() => response.destroy());
    return true;
  };
}
