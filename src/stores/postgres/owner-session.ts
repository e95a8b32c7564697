// Shows the database that this process lives, so that it may own runs.
//
//   owner/1  A session of its own holds the owner's advisory lock. It is queried every 10 s, and the server ends it after 30 s
//            without a query: then a frozen or disconnected process counts as dead.
//   owner/2  A lost session is replaced, with the same incarnation: the process keeps its runs unless another has taken them.
//   owner/3  The session of a process that has died on this machine ends soon: a new process waits for that. One of a living
//            process is not waited for.
//   owner/4  A pooler would share the session with others, so it is refused.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

import { UsageError } from '../../base/errors.ts';
import { findProcess, lives } from '../../sys/process.ts';
import { type FleetAddress, schemaOf } from './address.ts';
import { Connection, ConnectionLost } from './connection.ts';

export interface Owner {
  readonly id: string;
  readonly kind: 'machine' | 'client';
  /** Of the machine, stable: a copied data folder is recognized by it. */
  readonly hostId: string;
}

/** For a process that only creates and reads runs. */
export function clientOwner(hostId: string): Owner {
  return { id: `client-${randomUUID()}`, kind: 'client', hostId };
}

const BEAT_MS = 10_000;
const RETRY_MS = 500;
/** After so long without a query, the server ends the session. */
const SILENCE_MS = 30_000;

export class OwnerSession {
  readonly owner: Owner;
  readonly #address: FleetAddress;
  readonly #lock: Connection;
  readonly #incarnation = randomUUID();
  #started: Promise<void> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(address: FleetAddress, owner: Owner) {
    this.owner = owner;
    this.#address = address;
    this.#lock = new Connection(address, {
      name: `meow lock ${owner.id}`,
      prepare: `set idle_session_timeout = ${SILENCE_MS};`,
      statementMs: 8_000,
      lost: () => {
        if (this.#timer === null || this.#closed) return;
        clearTimeout(this.#timer);
        this.#beatLater(0);
      },
    });
  }

  /** Resolves once the process owns what it takes. Throws if another process is this owner. */
  start(): Promise<void> {
    this.#started ??= this.#helloAfterDead().then(
      () => this.#beatLater(BEAT_MS),
      (error: unknown) => {
        this.#started = null;
        throw error;
      },
    );
    return this.#started;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#started !== null) {
      const bye = this.#lock.query(`select ${schemaOf(this.#address)}.goodbye($1)`, [this.owner.id]);
      // If the database is away, its session ends by itself.
      await bye.catch(ignoreLoss);
    }
    await this.#lock.close();
  }

  async #helloAfterDead(): Promise<void> {
    const deadline = performance.now() + SILENCE_MS + BEAT_MS;
    for (;;) {
      const heldBy = await this.#hello();
      if (heldBy === null) return;
      const before = findProcess(heldBy.by_process);
      const isDying = before === null || !lives(before);
      if (!isDying || performance.now() > deadline) throw refusal(this.owner.id, heldBy);
      await sleep(RETRY_MS / 10);
    }
  }

  /** Null if it holds the lock now; otherwise who does. */
  async #hello(): Promise<Greeting | null> {
    const { greeted, answers } = await this.#lock.backends();
    if (greeted !== answers) {
      throw new UsageError(
        `there is a connection pooler before the database ${this.#address.shown}; it would share the lock of this process with others`,
        'name the database itself in the address of the fleet, not PgBouncer or another pooler',
      );
    }
    const { id, kind, hostId } = this.owner;
    const [said] = await this.#lock.query<Greeting>(
      `select * from ${schemaOf(this.#address)}.hello($1, $2, $3, $4, $5, $6)`,
      [id, kind, hostname(), hostId, process.pid, this.#incarnation],
    );
    if (said === undefined || said.answer === 'ok') return null;
    if (said.answer === 'held') return said;
    throw refusal(id, said);
  }

  #beatLater(ms: number): void {
    if (this.#closed) return;
    this.#timer = setTimeout(() => void this.#beat(), ms);
    this.#timer.unref();
  }

  async #beat(): Promise<void> {
    try {
      const [row] = await this.#lock.query<{ held: boolean }>(`select ${schemaOf(this.#address)}.beat($1) as held`, [
        this.owner.id,
      ]);
      if (row?.held !== true) await this.#hello();
      this.#beatLater(BEAT_MS);
    } catch (error) {
      // Also if another process is this owner by now: what it takes is refused to this one.
      if (!(error instanceof UsageError)) throw error;
      this.#beatLater(RETRY_MS);
    }
  }
}

/** `answer`: 'ok', or why not. `by_*`: the process that was this owner before. */
interface Greeting {
  readonly answer: string;
  readonly by_process: number;
  readonly by_host: string;
}

function refusal(id: string, { answer, by_process: pid, by_host: host }: Greeting): UsageError {
  if (answer === 'held') {
    return new UsageError(
      `${id} is already connected: process ${pid} on ${host}`,
      'one process at a time owns the runs of a machine and data folder: stop that one, or use another folder',
    );
  }
  if (answer === 'host') {
    return new UsageError(
      `${id} belongs to the host ${host}, and this is ${hostname()}: its data folder was copied`,
      'start with an empty data folder here',
    );
  }
  return new UsageError(`${id} belongs to another user of the database`, 'connect as the user that registered it');
}

function ignoreLoss(error: unknown): void {
  if (!(error instanceof ConnectionLost)) throw error;
}
