// `meow serve`: resumes runs, starts schedules and answers hooks, until it is stopped.

import type { ServerResponse } from 'node:http';
import { join } from 'node:path';

import { sharedFolder } from '../../app/project.ts';
import { type ListenAddress, installService, serviceStatus, uninstallService } from '../../app/serve/install-serve.ts';
import type { Handler, Listening } from '../../app/serve/serve-routes.ts';
import { notePageAddress } from '../../app/page-address.ts';
import { serve as serveAll } from '../../app/serve/serve.ts';
import { UsageError } from '../../base/errors.ts';
import type { Switches } from '../flags.ts';
import { EXIT, printLine, tolerateLostOutput } from '../output.ts';

declare const MEOW_VERSION: string;

export interface ServeFlags extends Switches<'json' | 'install' | 'uninstall' | 'status'> {
  readonly listen?: string;
  readonly port?: number;
}

const PORT = 7467;
const ACTIONS = ['install', 'uninstall', 'status'] as const;

export async function serve(flags: ServeFlags): Promise<number> {
  const asked = ACTIONS.filter((name) => flags[name]);
  if (asked.length > 1) throw new UsageError(`--${asked.join(' and --')} exclude each other`, 'give one of them');
  const port = flags.port ?? PORT;
  const host = flags.listen ?? '127.0.0.1';
  const [action] = asked;
  if (action === undefined) return serveUntilStopped({ host, port }, flags.json === true);
  if (action === 'status') {
    const { text, isRunning } = await serviceStatus();
    printLine(text);
    return isRunning ? EXIT.done : EXIT.failed;
  }
  printLine(action === 'install' ? installService({ host, port }) : uninstallService());
  return EXIT.done;
}

async function serveUntilStopped({ host, port }: ListenAddress, json: boolean): Promise<number> {
  const stopping = new AbortController();
  let status: number = EXIT.done;
  for (const [signal, code] of STOP_SIGNALS) {
    process.once(signal, () => {
      status = code;
      stopping.abort();
    });
  }
  tolerateLostOutput();
  const note = (line: string): void =>
    json ? undefined : printLine(`${new Date().toTimeString().slice(0, 8)} ${line}`);
  let forget = (): void => {};
  const options = {
    note,
    listen: (handler: Handler) => listen({ host, port }, handler),
    ready({ url, port: bound, token }: Listening) {
      if (LOOPBACK.has(host)) forget = notePageAddress(`${url}#token=${token}`);
      if (json) return printLine(JSON.stringify({ url, port: bound, pid: process.pid, token_file: tokenFile() }));
      // The output of a service ends up in a log, where no token may be.
      const address = process.stdout.isTTY ? `${url}#token=${token}` : `${url} (token: ${tokenFile()})`;
      printLine(`serving all projects of this user: ${address}, pid ${process.pid}`);
    },
  };
  await serveAll(options, stopping.signal);
  forget();
  return status;
}

const STOP_SIGNALS = [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const;

function tokenFile(): string {
  return join(sharedFolder(), 'serve.token');
}

/** The page is served on loopback only: elsewhere its token could be read on the network. */
async function listen({ host, port }: ListenAddress, handler: Handler): Promise<Listening> {
  const { startUi } = await import('../../web/server.ts');
  const started = await startUi({
    version: MEOW_VERSION,
    host,
    port,
    tls: null,
    readOnly: false,
    projects: [],
    before: LOOPBACK.has(host) ? handler : (request, response) => handler(request, response) || refusePage(response),
  });
  if (!started.ok) throw new UsageError(started.error.message, started.error.hint);
  const { url, ...server } = started.value;
  return { ...server, url: url.replace(/#.*$/, '') };
}

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '::1', 'localhost']);

function refusePage(response: ServerResponse): true {
  response.writeHead(404, { 'content-type': 'text/plain' });
  response.end('the page is served on 127.0.0.1 only\n');
  return true;
}
