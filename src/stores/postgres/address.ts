// The address of a fleet: which database, which namespace in it, and whether the connection is safe.
//
//   postgres://USER@HOST:PORT/DATABASE?namespace=NAME
//   postgres:///DATABASE?host=/FOLDER/OF/SOCKET&user=USER
//
//   fleet-url/1  TLS with a verified certificate and name (`sslmode=verify-full`), except for loopback and Unix sockets.
//   fleet-url/2  No message contains the password.

import { readFileSync } from 'node:fs';

import { UsageError } from '../../base/errors.ts';
import { asUsageError } from '../../sys/errors.ts';

export interface FleetAddress {
  /** Host name, or the folder of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly user: string | undefined;
  readonly password: string | undefined;
  readonly database: string;
  readonly namespace: string;
  /** Null: without TLS. */
  readonly tls: { readonly ca: string | undefined } | null;
  /** For messages, without the password. */
  readonly shown: string;
}

const DEFAULT_NAMESPACE = 'default';

export function parseAddress(text: string): FleetAddress {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !['postgres:', 'postgresql:'].includes(url.protocol)) {
    throw new UsageError('the address of the fleet is not a URL of PostgreSQL', `write it as ${EXAMPLE}`);
  }
  const { searchParams: given } = url;
  const unknown = [...given.keys()].find((name) => !KNOWN.includes(name));
  if (unknown !== undefined) {
    throw new UsageError(`the address of the fleet has an unknown parameter: ${unknown}`, `known: ${KNOWN.join(', ')}`);
  }
  const host = given.get('host') ?? decodeURIComponent(url.hostname).replaceAll(/[[\]]/g, '');
  if (host === '') throw new UsageError('the address of the fleet names no host', `write it as ${EXAMPLE}`);
  const database = decodeURIComponent(url.pathname.slice(1));
  if (database === '') throw new UsageError('the address of the fleet names no database', `write it as ${EXAMPLE}`);
  const port = url.port === '' ? 5432 : Number(url.port);
  const namespace = checkNamespace(given.get('namespace') ?? DEFAULT_NAMESPACE);
  return {
    host,
    port,
    user: given.get('user') ?? orUndefined(decodeURIComponent(url.username)),
    password: orUndefined(decodeURIComponent(url.password)),
    database,
    namespace,
    tls: tlsFor(host, given.get('sslmode'), given.get('sslrootcert')),
    shown: `${database} at ${host.startsWith('/') ? `${host} (port ${port})` : `${host}:${port}`}`,
  };
}

export function checkNamespace(name: string): string {
  if (/^[a-z][a-z0-9_]{0,30}$/.test(name)) return name;
  throw new UsageError(
    `${JSON.stringify(name)} is not a namespace`,
    'a namespace has 1 to 31 lower-case letters, digits and "_", and begins with a letter',
  );
}

/** The schema that holds everything of a namespace. */
export function schemaOf({ namespace }: Pick<FleetAddress, 'namespace'>): string {
  return `meow_${namespace}`;
}

const EXAMPLE = 'postgres://USER@HOST/DATABASE';
const KNOWN = ['host', 'user', 'namespace', 'sslmode', 'sslrootcert'];

function tlsFor(host: string, mode: string | null, root: string | null): FleetAddress['tls'] {
  const isLocal = host.startsWith('/') || /^(?:localhost|127\.\d+\.\d+\.\d+|::1)$/.test(host);
  const wanted = mode ?? (isLocal ? 'disable' : 'verify-full');
  if (wanted === 'verify-full') return { ca: root === null ? undefined : readCertificate(root) };
  if (wanted !== 'disable') {
    throw new UsageError(`sslmode=${wanted} does not verify the server`, 'use sslmode=verify-full');
  }
  if (!isLocal) {
    throw new UsageError(
      `sslmode=${wanted} does not verify the server at ${host}: anybody on the way could read and change the runs`,
      'use sslmode=verify-full, with sslrootcert=FILE for a certificate of your own',
    );
  }
  return null;
}

function readCertificate(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw asUsageError(error, 'read the certificate of the fleet', path);
  }
}

function orUndefined(text: string): string | undefined {
  return text === '' ? undefined : text;
}
