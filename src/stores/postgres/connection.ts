// A connection to PostgreSQL that never waits without a deadline.
//
//   database/1  Connecting and every statement have a deadline here. After it the socket is closed, so that a server or a
//                 network that does not answer is noticed. The server has shorter ones, which end what nobody waits for.
//   database/2  After a loss, the next statement connects again. A statement is never sent twice here: only its caller
//                 knows whether it may be.
//   database/3  A connection without a statement in flight does not keep the process alive.
//   database/4  Errors of the operator (address, password, rights, schema) are UsageErrors with the cure. A loss is a
//                 `ConnectionLost`, after which the statement may or may not have taken effect.

import type { Client, ClientConfig } from 'pg';

import { UsageError } from '../../base/errors.ts';
import { type FleetAddress, schemaOf } from './address.ts';

/** `ref` and `unref` say whether its socket keeps the process alive. */
type PgClient = Client & { ref(): void; unref(): void; readonly processID: number };

/** The database did not answer. Whether the statement took effect is unknown. */
export class ConnectionLost extends UsageError {
  constructor(address: FleetAddress, why: string) {
    super(
      `the database ${address.shown} does not answer: ${why}`,
      'start it, or check the address and the network; see the connection: meow fleet check',
    );
  }
}

export interface ConnectionOptions {
  /** What the database shows about this connection. */
  readonly name: string;
  /** SQL that runs once on each new session. */
  readonly prepare?: string;
  readonly connectMs?: number;
  readonly statementMs?: number;
  /** Called when an idle session has ended unexpectedly. */
  readonly lost?: () => void;
}

export class Connection {
  readonly #address: FleetAddress;
  readonly #options: Required<ConnectionOptions>;
  #client: Promise<PgClient> | null = null;
  #inFlight = 0;
  #closed = false;

  constructor(
    address: FleetAddress,
    { name, prepare = '', connectMs = 10_000, statementMs = 30_000, lost = () => {} }: ConnectionOptions,
  ) {
    this.#address = address;
    this.#options = { name, prepare, connectMs, statementMs, lost };
  }

  /** The rows. Values arrive as `pg` parses them. */
  async query<Row extends object>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    const client = await this.#connected();
    return this.#send(client, () => client.query<Row>(text, [...values]).then(({ rows }) => rows));
  }

  /** The process id of the server that greeted this connection, and the one that answers statements. They differ behind a pooler. */
  async backends(): Promise<{ readonly greeted: number; readonly answers: number }> {
    const client = await this.#connected();
    const [row] = await this.query<{ pid: number }>('select pg_backend_pid() as pid');
    return { greeted: client.processID, answers: row?.pid ?? 0 };
  }

  /** Closes the socket. Statements in flight reject. Later ones connect again, unless the connection is closed for good. */
  async drop(): Promise<void> {
    const client = this.#client;
    this.#client = null;
    if (client === null) return;
    const end = (open: PgClient): Promise<void> => {
      // Else the process could end here.
      open.ref();
      return open.end();
    };
    await client.then(end).catch(() => {});
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.drop();
  }

  async #connected(): Promise<PgClient> {
    if (this.#closed) throw new ConnectionLost(this.#address, 'the connection was closed');
    this.#client ??= this.#connect();
    const connecting = this.#client;
    try {
      return await connecting;
    } catch (error) {
      if (this.#client === connecting) this.#client = null;
      throw error;
    }
  }

  async #connect(): Promise<PgClient> {
    const { Client: Connecting } = await loadClient();
    const client = new Connecting(configOf(this.#address, this.#options)) as PgClient;
    client.on('error', () => this.#forget(client));
    client.on('end', () => this.#forget(client));
    try {
      await client.connect();
      await this.#send(client, () => client.query(SESSION + this.#options.prepare));
    } catch (error) {
      client.end().catch(() => {});
      throw explain(error, this.#address);
    }
    client.unref();
    return client;
  }

  #forget(client: PgClient): void {
    this.#client?.then(
      (open) => {
        if (open !== client) return;
        this.#client = null;
        if (this.#inFlight === 0) this.#options.lost();
      },
      () => {},
    );
  }

  async #send<T>(client: PgClient, act: () => Promise<T>): Promise<T> {
    this.#inFlight += 1;
    client.ref();
    // Ends the socket, which rejects everything in flight.
    const late = setTimeout(() => void client.end().catch(() => {}), this.#options.statementMs);
    try {
      return await act();
    } catch (error) {
      const explained = explain(error, this.#address);
      if (explained instanceof ConnectionLost) this.#forget(client);
      throw explained;
    } finally {
      clearTimeout(late);
      this.#inFlight -= 1;
      if (this.#inFlight === 0) client.unref();
    }
  }
}

/** Settings of every session of ours. `statement_timeout` is shorter than our own deadline. */
const SESSION = `
set statement_timeout = '25s'; set lock_timeout = '15s'; set idle_in_transaction_session_timeout = '30s';
set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3; set tcp_user_timeout = 25000;
set client_min_messages = warning; set default_transaction_isolation = 'read committed';
set synchronous_commit = on; set extra_float_digits = 1; set bytea_output = 'hex';
`;

function configOf(address: FleetAddress, { name, connectMs }: Required<ConnectionOptions>): ClientConfig {
  const { host, port, user, password, database, tls } = address;
  return {
    host,
    port,
    user,
    password,
    database,
    ssl: tls === null ? false : { ca: tls.ca, rejectUnauthorized: true },
    application_name: name,
    connectionTimeoutMillis: connectMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  };
}

/** The client is an optional dependency, which only fleets need. */
async function loadClient(): Promise<{ readonly Client: typeof Client }> {
  try {
    return (await import('pg')).default;
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && MISSING.includes(error.code as string);
    if (!isMissing) throw error;
    throw new UsageError(
      'the package pg, which connects to PostgreSQL, is not installed',
      'install it beside meow: npm install --global pg@8, or install meow without --omit=optional',
    );
  }
}

const MISSING = ['MODULE_NOT_FOUND', 'ERR_MODULE_NOT_FOUND'];

function explain(error: unknown, address: FleetAddress): unknown {
  if (!(error instanceof Error) || error instanceof UsageError) return error;
  const code = 'code' in error ? String(error.code) : '';
  const known = KNOWN[code]?.(address);
  if (known !== undefined) return known;
  if (LOST.test(code) || LOST_MESSAGE.test(error.message)) return new ConnectionLost(address, reasonOf(error, code));
  if (CERTIFICATE.test(code)) {
    return new UsageError(
      `the certificate of ${address.host} cannot be trusted: ${error.message}`,
      'name the authority that signed it: sslrootcert=FILE in the address of the fleet',
    );
  }
  return error;
}

function reasonOf(error: Error, code: string): string {
  const [first] = error instanceof AggregateError ? error.errors : [];
  const said = error.message !== '' ? error.message : first instanceof Error ? first.message : '';
  return said === '' ? code : said;
}

/** System errors of a socket; classes 08 and 57P of SQLSTATE; a session that the server ended; too many connections. */
const LOST =
  /^(?:E(?:CONN(?:REFUSED|RESET|ABORTED)|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|HOSTDOWN|NOTCONN|AI_AGAIN)|ENOENT|08...|57P0[1-5]|25P03|57014|55P03|53300|40001|40P01)$/;
const LOST_MESSAGE =
  /^(?:Connection terminated|Client has encountered|Client was closed|timeout expired|Query read timeout|read ECONN|write E|socket hang up)/i;
const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO_|ERR_TLS/;

type Explain = (address: FleetAddress) => UsageError;

const wrongPassword: Explain = ({ shown, user }) =>
  new UsageError(
    `the database ${shown} refuses the user ${user ?? '(none)'} or its password`,
    'check user and password in the address of the fleet, or ~/.pgpass',
  );

const noSchema: Explain = (address) =>
  new UsageError(
    `the database ${address.shown} has no namespace ${address.namespace} of this version`,
    `create it: meow fleet init --namespace ${address.namespace} · or name another: ?namespace=NAME in the address`,
  );

/** By SQLSTATE or the system's code. */
const KNOWN: Readonly<Record<string, Explain>> = {
  ENOTFOUND: ({ host }) => new UsageError(`there is no host ${host}`, 'check the address of the fleet'),
  '28P01': wrongPassword,
  '28000': wrongPassword,
  '3D000': ({ shown }) =>
    new UsageError(`there is no database ${shown}`, 'create it: createdb NAME, or check the address'),
  '3F000': noSchema,
  '42883': noSchema,
  '42501': (address) =>
    new UsageError(
      `the user ${address.user ?? '(none)'} has no right to do this in namespace ${address.namespace}`,
      `an owner of the namespace gives it: grant ${schemaOf(address)}_ROLE to USER (worker, operator or viewer)`,
    ),
  '25006': ({ shown }) =>
    new UsageError(`the database ${shown} is read-only`, 'name the primary server in the address, not a standby'),
  '53100': ({ shown }) =>
    new UsageError(`the disk of the database ${shown} is full`, 'free some space there, then try again'),
};
