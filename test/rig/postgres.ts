// A PostgreSQL server of the tests' own, and a relay before it that tests can cut. Without the programs of PostgreSQL, one line
// says so, and the tests with it count as skipped.

import { execFile } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, createConnection, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import {
  findPostgres,
  initPostgres,
  type LocalPostgres,
  serverUser,
  startPostgres,
  stopPostgres,
  urlOf,
} from '../../src/app/local-postgres.ts';
import { UsageError } from '../../src/base/errors.ts';
import { type FleetAddress, parseAddress } from '../../src/stores/postgres/address.ts';
import { Connection } from '../../src/stores/postgres/connection.ts';
import { migrate } from '../../src/stores/postgres/migrate.ts';

/** Why there is no server; null if there can be one. */
function reasonWithout(): string | null {
  if (findPostgres() === null) return 'PostgreSQL is not installed';
  try {
    serverUser();
    return null;
  } catch (error) {
    if (error instanceof UsageError) return error.message;
    throw error;
  }
}

const WITHOUT = reasonWithout();
export const HAS_POSTGRES = WITHOUT === null;

export function sayWithout(): void {
  if (WITHOUT !== null) process.stderr.write(`${WITHOUT}, so its tests are skipped; npm run setup installs it\n`);
}

/** For tests: nothing survives a crash of the machine, but everything one of the server. */
const SETTINGS = ['fsync=off', 'max_connections=200', 'log_min_messages=warning'];

export class TestPostgres {
  readonly url: string;
  readonly #server: LocalPostgres;
  readonly #admin: Connection;
  #namespaces = 0;

  private constructor(server: LocalPostgres) {
    this.#server = server;
    this.url = urlOf(server);
    this.#admin = new Connection(parseAddress(this.url), { name: 'admin' });
  }

  static async start(): Promise<TestPostgres> {
    const user = serverUser();
    const folder = mkdtempSync(join(tmpdir(), 'meow-pg-'));
    chmodSync(folder, 0o700);
    if (user !== null) chownSync(folder, user.uid, user.gid);
    const server = { binaries: findPostgres() ?? '', folder, user };
    await initPostgres(server);
    await startPostgres(server, SETTINGS);
    return new TestPostgres(server);
  }

  /** A namespace of its own, in which a role without other rights may do everything that the functions allow. */
  async namespace(): Promise<FleetAddress> {
    this.#namespaces += 1;
    const name = `t${this.#namespaces}`;
    const owner = parseAddress(`${this.url}&namespace=${name}`);
    await migrate(this.#admin, owner);
    await this.sql(
      `create role user_${name} login in role meow_${name}_viewer, meow_${name}_operator, meow_${name}_worker`,
    );
    return { ...owner, user: `user_${name}` };
  }

  /** For `meow`, as the user of a namespace. */
  urlFor({ namespace, user }: FleetAddress): string {
    return `${this.url.replace('user=meow', `user=${user}`)}&namespace=${namespace}`;
  }

  /** Everything in the database, as text; bytes as they are. */
  async dump(): Promise<string> {
    const { stdout } = await promisify(execFile)(join(findPostgres() ?? '', 'pg_dump'), ['--dbname', this.url], {
      maxBuffer: 512 * 1024 * 1024,
    });
    return stdout.replaceAll(/\\x([0-9a-f]+)/g, (_, hex: string) => Buffer.from(hex, 'hex').toString('latin1'));
  }

  /** As the owner of everything. */
  sql<Row extends object>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return this.#admin.query<Row>(text, values);
  }

  async restart(how: 'fast' | 'immediate' = 'immediate'): Promise<void> {
    await this.halt(how);
    await this.start();
  }

  async halt(how: 'fast' | 'immediate' = 'immediate'): Promise<void> {
    await stopPostgres(this.#server, how);
  }

  start(): Promise<void> {
    return startPostgres(this.#server, SETTINGS);
  }

  async dispose(): Promise<void> {
    await this.#admin.close();
    await stopPostgres(this.#server, 'immediate');
    rmSync(this.#server.folder, { recursive: true, force: true });
  }
}

/** Forwards connections to the server. Its own address is another folder with a socket. */
export class Relay {
  readonly address: FleetAddress;
  readonly #folder: string;
  readonly #server: Server;
  readonly #links = new Set<readonly [Socket, Socket]>();
  #swallow: string | null = null;

  private constructor(address: FleetAddress) {
    this.#folder = mkdtempSync(join(tmpdir(), 'meow-relay-'));
    this.address = { ...address, host: this.#folder };
    const name = `.s.PGSQL.${address.port}`;
    this.#server = createServer((near) => this.#link(near, createConnection(join(address.host, name))));
    this.#server.listen(join(this.#folder, name));
  }

  static async before(address: FleetAddress): Promise<Relay> {
    const relay = new Relay(address);
    if (!relay.#server.listening) await new Promise((resolve) => relay.#server.once('listening', resolve));
    return relay;
  }

  /** The answer to the next request that contains this text is lost, and its connection ends. */
  loseAnswerTo(text: string): void {
    this.#swallow = text;
  }

  /** Ends all connections. */
  cut(): void {
    for (const link of this.#links) for (const socket of link) socket.destroy();
  }

  async dispose(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #link(near: Socket, far: Socket): void {
    const link = [near, far] as const;
    this.#links.add(link);
    let isDeaf = false;
    const end = (): void => {
      this.#links.delete(link);
      for (const socket of link) socket.destroy();
    };
    near.on('data', (bytes) => {
      if (this.#swallow !== null && bytes.includes(this.#swallow)) {
        this.#swallow = null;
        isDeaf = true;
      }
      far.write(bytes);
    });
    far.on('data', (bytes) => {
      if (isDeaf) end();
      else near.write(bytes);
    });
    for (const socket of link) socket.on('close', end).on('error', end);
  }
}
