// A small process beside the engine that starts others, and tells of their beginnings and ends: what launcher.ts and
// drivers/agent/headless/turn-supervisor.ts have in common. What it does about what it is asked is in perl-script.ts.
//
// A request is its length, a line end, and fields separated by NUL: an id, when, the folder to work in, the folder of the step,
// the command by the number of its fields and one by one, names to take out of its environment likewise, and names and values to
// put there. Reports are lines: `ready`, `begun ID PID`, `refused ID ERRNO`, `ended ID WAIT-STATUS`. When it is gone, or says what
// cannot be understood, it is ended, and those who waited for it are told.
//
// A request may be *held*: all is made ready, and the process waits for its id on a second pipe before it becomes what was asked
// for. It reads that pipe itself, without a detour; so only one is held at a time, and the next when it has said `begun`.

import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { getSystemErrorName } from 'node:util';
import { present } from '../base/assert.ts';
import type { ErrnoError } from '../sys/errno.ts';
import { BUSY, ID_WIDTH, perlScript, UNLOCALISED } from './spawner-script.ts';
import type { PerlParts } from './spawner-script.ts';
import type { ProcessEvents } from './process.ts';
import { OWNER_MASKED } from '../sys/private-file.ts';
import { findProgram } from './recording-shell.ts';

export interface LaunchEvents extends ProcessEvents {
  /** The starter is gone, or what it started before it was heard of; nobody knows how far that came. */
  abandoned(): void;
}

export class PerlStarter {
  /** What those that it starts have, unless a request says otherwise. */
  protected readonly environment: Readonly<Record<string, string>>;
  readonly #waiting = new Map<string, Waiting>();
  readonly #process: PipedProcess;
  readonly #goAhead: Writable;
  #held: string | null = null;
  /** The ids of those that may begin, or have. */
  readonly #afoot = new Set<string>();
  #count = 0;
  #partial = '';
  #unsent = '';
  #state: 'starting' | 'ready' | 'gone' = 'starting';

  constructor(perl: string, parts: PerlParts, environment: Readonly<Record<string, string>>) {
    // What would change how perl itself runs is given to those that it starts alone.
    this.environment = Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('PERL')));
    this.#process = spawn(perl, ['-e', perlScript(parts)], {
      detached: true,
      env: { ...this.environment, [UNLOCALISED]: '1' },
      stdio: ['pipe', 'pipe', 'ignore', 'pipe'],
    }) as PipedProcess;
    this.#goAhead = this.#process.stdio[3] as Writable;
    this.#process.stdout.setEncoding('latin1');
    this.#process.stdout.on('data', (text: string) => this.#read(text));
    // A broken pipe, a perl that cannot be started, one that was killed: all the same to those who wait.
    for (const pipe of [this.#process.stdin, this.#goAhead]) pipe.on('error', () => this.#breakDown());
    this.#process.on('error', () => this.#breakDown());
    // Whoever is held ends with it, and closes the pipes that it has too.
    this.#process.on('exit', () => this.#goAhead.destroy());
    this.#process.on('close', () => this.#breakDown());
    this.#keepAwake(false);
  }

  /** Until it is, and once it is gone, processes are started without it. */
  get ready(): boolean {
    return this.#state === 'ready';
  }

  get pid(): number {
    return present(this.#process.pid, 'the starter never was');
  }

  protected request(fields: Fields, events: LaunchEvents): void {
    const id = this.#ask('at-once', fields, events);
    this.#stayFor(id);
  }

  /** Makes ready, and returns how to let it go. Null where one is held already. */
  protected hold(fields: Fields, events: LaunchEvents): (() => void) | null {
    if (this.#held !== null) return null;
    const id = this.#ask('held', fields, events);
    this.#held = id;
    return () => {
      if (!this.#waiting.has(id)) return;
      this.#stayFor(id);
      this.#goAhead.write(`${id.padStart(ID_WIDTH - 1)}\n`);
    };
  }

  #ask(when: 'at-once' | 'held', fields: Fields, events: LaunchEvents): string {
    this.#count += 1;
    const id = String(this.#count);
    this.#waiting.set(id, { events, isBegun: false });
    const text = [id, when, ...fields()].join('\0');
    this.#send(`${Buffer.byteLength(text)}\n${text}`);
    return id;
  }

  /** What is asked for in one turn is sent together: a stream takes its time for every piece. */
  #send(text: string): void {
    if (this.#unsent === '') {
      process.nextTick(() => {
        this.#process.stdin.write(this.#unsent);
        this.#unsent = '';
      });
    }
    this.#unsent += text;
  }

  #read(text: string): void {
    const lines = (this.#partial + text).split('\n');
    this.#partial = lines.pop() ?? '';
    for (const line of lines) {
      if (this.#state === 'gone') return;
      if (line === 'ready') {
        this.#state = 'ready';
        continue;
      }
      const report = REPORT.exec(line);
      if (report === null) {
        this.#breakDown();
        return;
      }
      const [, what, id = '', number = ''] = report;
      const waiting = this.#waiting.get(id);
      if (waiting === undefined) continue;
      if (id === this.#held) this.#held = null;
      const { events, isBegun } = waiting;
      if (what === 'begun') {
        waiting.isBegun = true;
        events.begun(Number(number));
        // Now there is time to get ready for the next, unless there is much to do anyway.
        if (this.#waiting.size <= BUSY) this.#send('0\n');
        continue;
      }
      this.#waiting.delete(id);
      this.#stayNoLonger(id);
      if (what === 'refused') events.refused(errnoError(Number(number)));
      else if (isBegun) events.ended(statusOf(Number(number)));
      else events.abandoned();
    }
  }

  #breakDown(): void {
    if (this.#state === 'gone') return;
    this.#state = 'gone';
    this.#process.kill('SIGKILL');
    this.#afoot.clear();
    this.#keepAwake(false);
    const left = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { events } of left) events.abandoned();
  }

  /** The engine lives for the sake of what runs, not for the sake of who starts it, nor of what is held. */
  #stayFor(id: string): void {
    this.#afoot.add(id);
    if (this.#afoot.size === 1) this.#keepAwake(true);
  }

  #stayNoLonger(id: string): void {
    if (this.#afoot.delete(id) && this.#afoot.size === 0) this.#keepAwake(false);
  }

  #keepAwake(isAwake: boolean): void {
    for (const part of [this.#process, this.#process.stdin, this.#process.stdout, this.#goAhead]) {
      // Pipes are sockets here, and only those of the types know that they can be let go.
      const handle = part as { ref?(): void; unref?(): void };
      if (isAwake) handle.ref?.();
      else handle.unref?.();
    }
  }
}

/** What its `stdio` makes of it. */
type PipedProcess = ChildProcess & { readonly stdin: Writable; readonly stdout: Readable };

/** What follows upon when. */
type Fields = () => readonly string[];

interface Waiting {
  readonly events: LaunchEvents;
  isBegun: boolean;
}

const REPORT = /^(begun|refused|ended) (\d+) (\d+)$/;

/** Null where there is none, or where the umask takes away what the files of those that it starts need. */
export function findPerl(environment: Readonly<Record<string, string>>): string | null {
  return OWNER_MASKED ? null : findProgram('perl', environment['PATH'] ?? '');
}

/** A wait status as shells tell it: death by signal N is 128 + N. */
function statusOf(wait: number): number {
  const signal = wait & 127;
  return signal === 0 ? wait >> 8 : 128 + signal;
}

function errnoError(errno: number): ErrnoError {
  const code = getSystemErrorName(-errno);
  return Object.assign(new Error(`${code}: the process could not be started`), { code, errno, syscall: 'exec' });
}
