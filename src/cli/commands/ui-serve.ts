// `meow ui` without an action: serves the page until it is killed. Prints one address, which contains a token that is valid for this start.
// The server is a bundle of its own (src/web), so that no other command loads it.

import { readFileSync } from 'node:fs';

import { notePageAddress } from '../../app/page-address.ts';
import { UsageError } from '../../base/errors.ts';
import { isSystemError } from '../../sys/errors.ts';
import type { Switches } from '../flags.ts';
import { openInBrowser } from '../open-browser.ts';
import { EXIT, printJson, printLine, warn } from '../output.ts';

declare const MEOW_VERSION: string;

export interface ServeFlags extends Switches<'json' | 'open' | 'readOnly' | 'insecurePlainHttp'> {
  readonly port?: number;
  readonly project?: readonly string[];
  readonly listen?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
}

const LOOPBACK = '127.0.0.1';
/** The keys of a telephone that spell "meow". */
const DEFAULT_PORT = 6369;

export async function serveUi(flags: ServeFlags): Promise<number> {
  const { startUi } = await import('../../web/server.ts');
  const tls = tlsIn(flags);
  const place = placeIn(flags, tls !== null);
  const options = {
    version: MEOW_VERSION,
    host: place.host,
    tls,
    readOnly: flags.readOnly === true,
    projects: flags.project ?? [],
  };
  let started = await startUi({ ...options, port: place.port ?? DEFAULT_PORT });
  // Another start has the usual port.
  if (!started.ok && started.error.kind === 'in-use' && place.port === null)
    started = await startUi({ ...options, port: 0 });
  if (!started.ok) {
    const { kind, message, hint } = started.error;
    warn(`meow: ${message}`);
    if (hint !== null) warn(`  ${hint}`);
    return kind === 'in-use' ? EXIT.failed : EXIT.usage;
  }
  const server = started.value;
  const { url, port } = server;
  if (flags.json) printJson({ url, port, pid: process.pid });
  else printLine(url);
  if (flags.listen !== undefined) warn(remarkOn(`${place.host}:${port}`, tls !== null));
  const opened = flags.open === true ? openInBrowser(url) : null;
  const forget = notePageAddress(url, flags.project);
  const status = await untilKilled();
  forget();
  opened?.remove();
  await server.close();
  return status;
}

function placeIn(
  { listen, port, insecurePlainHttp }: ServeFlags,
  hasTls: boolean,
): { readonly host: string; readonly port: number | null } {
  if (listen === undefined) return { host: LOOPBACK, port: port ?? null };
  const [, host, digits] = /^(.+):(\d{1,5})$/.exec(listen) ?? [];
  if (host === undefined || digits === undefined || Number(digits) > 65_535)
    throw new UsageError(`--listen ${listen} is not HOST:PORT`, 'for example: --listen 0.0.0.0:6369');
  if (port !== undefined) throw new UsageError('--listen names the port already', 'leave out --port');
  if (!hasTls && insecurePlainHttp !== true)
    throw new UsageError(
      `--listen ${listen} would send everything without encryption, also the token that lets a browser decide`,
      'give a certificate: --tls-cert FILE --tls-key FILE; or accept it: --insecure-plain-http',
    );
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port: Number(digits) };
}

function tlsIn({ tlsCert, tlsKey }: ServeFlags): { readonly cert: string; readonly key: string } | null {
  if (tlsCert === undefined && tlsKey === undefined) return null;
  if (tlsCert === undefined || tlsKey === undefined)
    throw new UsageError('--tls-cert and --tls-key belong together', 'give both, in PEM format');
  return { cert: readPem('--tls-cert', tlsCert), key: readPem('--tls-key', tlsKey) };
}

function readPem(flag: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new UsageError(`${flag} ${path} cannot be read (${error.code})`, 'give the path of a file in PEM format');
  }
}

function remarkOn(place: string, hasTls: boolean): string {
  const reach = `meow: everybody who can reach ${place} and has the token can see and steer your runs`;
  return hasTls ? reach : `${reach}; --insecure-plain-http: the token can be read on the network`;
}

const SIGNALS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/** Resolves to the exit status. */
function untilKilled(): Promise<number> {
  return new Promise((resolve) => {
    for (const [signal, status] of Object.entries(SIGNALS)) process.once(signal, () => resolve(status));
  });
}
