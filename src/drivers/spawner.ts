// Starts the processes of commands and turns from a helper process beside the engine. Node starts a process by copying
// itself, which takes the engine's only thread a millisecond or two; a small perl program (spawner-script.ts) does it for
// less, on another core. A run uses it when its processes are many, and only if perl is installed; everything works
// without it (process.ts).
//
// spawner/1  A request starts at most one process, which leads a session of its own.
// spawner/2  The helper ends with the engine. Processes that it has started continue. If it has to record how some of them end,
//            it ends when these have ended.
// spawner/3  If the helper dies, or reports something unintelligible, the engine kills it and tells those who wait for it,
//            who look for their processes themselves.
//
// A request is its length, a line end, and fields separated by NUL: id, working directory, the pinned folder above its files
// and the identity of that (nothing if there is none), the folders between, prefix of the names of its files, the line
// to record or nothing, path of stdin; then lists, each with its length in front: names and texts of files, environment variables
// to unset, names and values of those to set, and one list for each command: a path and the words of argv. Reports are
// lines: `ready`, `begun ID PID`, `refused ID ERRNO`, `ended ID WAIT-STATUS`. A process that cannot become its command
// writes its own line: each write is of whole lines, and so short that the system does not divide it.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { getSystemErrorName } from 'node:util';

import { present } from '../base/errors.ts';
import type { ErrnoError } from '../sys/errors.ts';
import { OWNER_MASKED, pinnedPlace } from '../sys/files.ts';
import type { Environment, ProcessEvents, ProcessRequest } from '../sys/process.ts';
import { findProgram } from './recording-shell.ts';
import { BUSY, SKIP_LOCALE, spawnerScript } from './spawner-script.ts';

/** The folder of the prefix must exist, unless it is below a pinned folder (sys/files.ts): then it is created. */
export interface SpawnRequest extends Pick<ProcessRequest, 'cwd' | 'environment' | 'prefix'> {
  /** Files to write before the process begins. */
  readonly files: Readonly<Record<string, string>>;
  /** Absolute path; one that begins with `prefix` is found although somebody replaces the folders of the prefix. */
  readonly stdin: string;
  /**
   * Not null: the helper keeps `status` (step-folder.ts): who leads, exclusively and first, with this line after it, and how
   * that ended.
   */
  readonly record: string | null;
  /** The process becomes the first of these that can be executed: a path, and the words of argv. */
  readonly commands: readonly (readonly [path: string, ...words: readonly string[]])[];
}

export interface SpawnEvents extends ProcessEvents {
  /** The helper died: the progress of the process is unknown. */
  abandoned(): void;
}

type Variables = Environment['base'];

export class Spawner {
  /** Undefined until it is looked for. */
  #perl: string | null | undefined;
  /** What processes inherit, unless a request says otherwise. */
  readonly #environment: Variables;
  #helper: Helper | null = null;
  /** The difference between the environment of the helper and the base of the latest request; many requests share one. */
  #base: { readonly of: Variables; readonly unset: readonly string[]; readonly set: readonly string[] };

  /** `perl`: a path, or null to do without a helper; by default it is looked for on PATH. */
  constructor(environment: Variables, perl?: string | null) {
    this.#perl = perl;
    // Variables that change how perl itself runs are set in each request.
    this.#environment = Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('PERL')));
    this.#base = { of: this.#environment, unset: [], set: [] };
  }

  /** Starts the helper, if it is not there. Before it is ready, and after it has died, start processes without it. */
  launch(): void {
    // If the umask denies the owner access to files, the helper could not make those of processes.
    if (this.#perl === undefined)
      this.#perl = OWNER_MASKED ? null : findProgram('perl', this.#environment['PATH'] ?? '');
    if (this.#perl !== null) this.#helper ??= startedHelper(this.#perl, this.#environment);
  }

  get ready(): boolean {
    return this.#helper?.state === 'ready';
  }

  get pid(): number {
    return present(this.#helper, 'the helper was not launched').pid;
  }

  /** Only while it is ready. */
  start(request: SpawnRequest, events: SpawnEvents): void {
    present(this.#helper, 'the helper was not launched').request(this.#fields(request), events);
  }

  #fields({ cwd, prefix, environment, files, stdin, record, commands }: SpawnRequest): readonly string[] {
    const { base, own } = environment;
    if (base !== this.#base.of) {
      const unset = Object.keys(this.#environment).filter((name) => base[name] === undefined);
      const set = Object.entries(base).filter(([name, value]) => this.#environment[name] !== value);
      this.#base = { of: base, unset, set: set.flat() };
    }
    const set = [...this.#base.set, ...Object.entries(own).flat()];
    const lists = [Object.entries(files).flat(), this.#base.unset, set, ...commands];
    const { top, identity, folders } = pinnedPlace(prefix.slice(0, prefix.lastIndexOf('/')));
    const name = prefix.slice(prefix.lastIndexOf('/') + 1);
    const input = stdin.startsWith(prefix) ? `${name}${stdin.slice(prefix.length)}` : stdin;
    return [
      cwd,
      top,
      identity,
      folders,
      name,
      record ?? '',
      input,
      ...lists.flatMap((list) => [String(list.length), ...list]),
    ];
  }
}

/** Null if the system refuses: the next launch tries again. */
function startedHelper(perl: string, environment: Variables): Helper | null {
  const started = spawn(perl, ['-e', spawnerScript()], {
    detached: true,
    env: { ...environment, [SKIP_LOCALE]: '1' },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  // Otherwise its pipes may be missing too.
  if (started.pid !== undefined) return new Helper(started);
  started.once('error', () => undefined);
  return null;
}

/** One process of the perl program. */
class Helper {
  state: 'starting' | 'ready' | 'dead' = 'starting';
  readonly #process: PipedProcess;
  /** Processes that were requested and have not ended, by id. */
  readonly #pending = new Map<string, SpawnEvents>();
  #count = 0;
  #partialLine = '';
  #unsent = '';

  constructor(process: PipedProcess) {
    this.#process = process;
    this.#process.stdout.setEncoding('latin1');
    this.#process.stdout.on('data', (text: string) => this.#read(text));
    // A broken pipe, or a perl that was killed: it is all the same to those who wait.
    this.#process.stdin.on('error', () => this.#breakDown());
    this.#process.on('error', () => this.#breakDown());
    this.#process.on('close', () => this.#breakDown());
    this.#keepEngineAlive(false);
  }

  get pid(): number {
    return present(this.#process.pid, 'the helper could not be started');
  }

  request(fields: readonly string[], events: SpawnEvents): void {
    this.#count += 1;
    const id = String(this.#count);
    this.#pending.set(id, events);
    if (this.#pending.size === 1) this.#keepEngineAlive(true);
    const text = [id, ...fields].join('\0');
    this.#write(`${Buffer.byteLength(text)}\n${text}`);
  }

  /** Sends the requests of one tick together: a stream takes its time for every piece. */
  #write(text: string): void {
    if (this.#unsent === '') {
      process.nextTick(() => {
        this.#process.stdin.write(this.#unsent);
        this.#unsent = '';
      });
    }
    this.#unsent += text;
  }

  #read(text: string): void {
    const lines = (this.#partialLine + text).split('\n');
    this.#partialLine = lines.pop() ?? '';
    for (const line of lines) {
      if (this.state === 'dead') return;
      const report = REPORT.exec(line);
      if (line === 'ready') this.state = 'ready';
      else if (report === null) this.#breakDown();
      else this.#apply(report);
    }
  }

  #apply([, what, id = '', number = '']: readonly string[]): void {
    const events = this.#pending.get(id);
    if (events === undefined) return;
    if (what === 'begun') {
      events.begun(Number(number));
      // Now the helper has time to fork a spare, unless there is much to do anyway.
      if (this.#pending.size <= BUSY) this.#write('0\n');
      return;
    }
    this.#pending.delete(id);
    if (this.#pending.size === 0) this.#keepEngineAlive(false);
    if (what === 'refused') events.refused(errnoError(Number(number)));
    else events.ended(exitStatus(Number(number)));
  }

  #breakDown(): void {
    if (this.state === 'dead') return;
    this.state = 'dead';
    this.#process.kill('SIGKILL');
    this.#keepEngineAlive(false);
    const left = [...this.#pending.values()];
    this.#pending.clear();
    for (const events of left) events.abandoned();
  }

  /** The engine waits for processes that run, not for the helper itself. */
  #keepEngineAlive(isNeeded: boolean): void {
    for (const part of [this.#process, this.#process.stdin, this.#process.stdout]) {
      // The pipes are sockets, but their types do not say so.
      const handle = part as { ref?(): void; unref?(): void };
      if (isNeeded) handle.ref?.();
      else handle.unref?.();
    }
  }
}

type PipedProcess = ChildProcessByStdio<Writable, Readable, null>;

const REPORT = /^(begun|refused|ended) (\d+) (\d+)$/;

/** The status that a shell shows for a wait status: 128 + N for death by signal N. */
function exitStatus(wait: number): number {
  const signal = wait & 127;
  return signal === 0 ? wait >> 8 : 128 + signal;
}

function errnoError(errno: number): ErrnoError {
  const code = getSystemErrorName(-errno);
  return Object.assign(new Error(`${code}: the process could not be started`), { code, errno, syscall: 'exec' });
}
