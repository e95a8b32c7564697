// The records of one run, and the state that they fold to: the one that the page shows.
//
//   run-store/1  The state is folded by the kernel, as in the engine, in slices of SLICE_MS. Nothing else computes it.
//   run-store/2  The page draws at most once in an animation frame, and never a state between two records.
//   run-store/3  While an earlier record is shown, new records change only `lastSeq`.
//   run-store/4  After a reconnection the server sends what is missing. A journal that was cut is folded again, one that
//                was replaced is loaded again.

import { signal } from '@preact/signals';
import type { Program } from '../ir/program.ts';
import { applyRecord } from '../kernel/apply.ts';
import { initialState, type RunState } from '../kernel/state.ts';
import {
  type ExportDocument,
  type PageRecord,
  type ProgramDocument,
  type Refusal,
  runDataPath,
  type RunEngine,
  type RunLoss,
  type RunName,
  type ServerMessage,
} from '../web/protocol.ts';
import { subscribe } from './connection.ts';
import { exported } from './exported.ts';
import { sliced } from './slices.ts';

/** What is drawn. It is replaced by each draw, so components that read it are drawn again. */
export interface RunPicture {
  /** Changes in place with the next record: read it while drawing, and do not keep parts of it. */
  readonly state: RunState;
  /** All records that have arrived, not only those that are shown. The first has number 1. */
  readonly records: readonly PageRecord[];
  /** The record shown. */
  readonly seq: number;
  readonly lastSeq: number;
  /** Whether it is the last record, and follows the run. */
  readonly isLive: boolean;
  /** Null if no engine works on the run. */
  readonly engine: RunEngine | null;
}

export interface RunProblem {
  readonly why: RunLoss | 'refused';
  readonly message: string;
  readonly cure: string | null;
}

export class RunStore {
  /** Null until everything that was recorded when the page asked is folded. */
  readonly picture = signal<RunPicture | null>(null);
  /** Why the run cannot be shown, or not any further. What was folded stays in `picture`. */
  readonly problem = signal<RunProblem | null>(null);
  readonly of: RunName;
  #program: Program | null = null;
  #generation: string | null = null;
  #records: PageRecord[] = [];
  #engine: RunEngine | null = null;
  #live: Fold | null = null;
  /** The record that the slider asks for; null: the last. */
  #chosen: number | null = null;
  #past: Fold | null = null;
  #work: (() => void) | null = null;
  #frame: number | null = null;
  #load = new AbortController();
  #unsubscribe: (() => void) | null = null;

  constructor(of: RunName) {
    this.of = of;
    if (exported === null) void this.#loadAll();
    else this.#show(exported);
  }

  #show({ program, records, engine }: ExportDocument): void {
    this.#program = program;
    this.#records = [...records];
    this.#engine = engine;
    this.#live = startFold(program);
    this.#fold();
  }

  /** Shows the run after this record; null: follows the run. */
  show(seq: number | null): void {
    if (seq === this.#chosen) return;
    this.#chosen = seq;
    if (seq === null) this.#past = null;
    this.#fold();
  }

  close(): void {
    this.#load.abort();
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    this.#work?.();
    if (this.#frame !== null) cancelAnimationFrame(this.#frame);
    this.#frame = null;
  }

  /** In bulk; later records come over the socket. */
  async #loadAll(): Promise<void> {
    const load = this.#load;
    try {
      const [program, records] = await Promise.all([
        fetch(runDataPath(this.of, 'program'), { signal: load.signal }),
        fetch(runDataPath(this.of, 'records'), { signal: load.signal }),
      ]);
      for (const response of [program, records]) {
        if (!response.ok) {
          this.#refused(response.status, (await response.json()) as Refusal);
          return;
        }
      }
      this.#program = ((await program.json()) as ProgramDocument).program;
      this.#generation = records.headers.get('meow-generation');
      this.#records = await this.#read(await records.text());
      if (load.signal.aborted) return;
      this.#live = startFold(this.#program);
      this.#fold();
    } catch (error) {
      // Aborted, or the server is away: the connection says so, and the subscription brings everything.
      if (load.signal.aborted) return;
      if (!(error instanceof TypeError)) throw error;
    }
    this.#follow();
  }

  #refused(status: number, refusal: Refusal): void {
    if (status === 401) {
      // The server was started again. As soon as the browser has its cookie, the subscription asks for everything.
      this.#follow();
      return;
    }
    const why = status === 404 ? 'missing' : (refusal.why ?? 'refused');
    this.problem.value = { why, message: refusal.message, cure: refusal.cure };
  }

  async #read(text: string): Promise<PageRecord[]> {
    const records: PageRecord[] = [];
    let from = 0;
    await new Promise<void>((resolve) => {
      sliced(() => {
        const end = text.indexOf('\n', from);
        if (end < 0) return false;
        records.push(JSON.parse(text.slice(from, end)) as PageRecord);
        from = end + 1;
        return true;
      }, resolve);
    });
    return records;
  }

  #follow(): void {
    this.#unsubscribe ??= subscribe(
      {
        message: () => {
          const last = this.#records.at(-1);
          const known = this.#generation === null || last === undefined;
          return {
            kind: 'follow',
            of: this.of,
            fromSeq: (last?.seq ?? 0) + 1,
            ...(known ? {} : { generation: this.#generation ?? '', lastAt: last.at }),
          };
        },
        receive: (message) => this.#receive(message),
      },
      { kind: 'unfollow', of: this.of },
    );
  }

  #receive(message: ServerMessage): void {
    if (!('of' in message) || message.of.run !== this.of.run || message.of.project !== this.of.project) return;
    switch (message.kind) {
      case 'run':
        this.problem.value = null;
        this.#engine = message.engine;
        if (this.#program === null || message.generation !== this.#generation) this.#loadAgain();
        else this.#requestDraw();
        break;
      case 'records':
        this.#add(message.records);
        break;
      case 'cut':
        this.#cut(message.lastSeq);
        break;
      case 'engine':
        this.#engine = message.engine;
        this.#requestDraw();
        break;
      case 'lost':
        this.problem.value = { why: message.why, message: message.message, cure: message.cure };
        break;
      case 'terminal':
      case 'terminal-ended':
      case 'keys-refused':
        break;
    }
  }

  #add(records: readonly PageRecord[]): void {
    const last = this.#records.at(-1)?.seq ?? 0;
    const fresh = records.filter(({ seq }) => seq > last);
    if (this.#program === null || fresh[0] === undefined || fresh[0].seq !== last + 1) return;
    this.#records.push(...fresh);
    this.#fold();
  }

  #cut(lastSeq: number): void {
    if (this.#program === null || lastSeq >= this.#records.length) return;
    this.#records = this.#records.slice(0, lastSeq);
    this.#live = startFold(this.#program);
    this.#past = null;
    this.#fold();
  }

  /** Another journal has taken the place of this one. */
  #loadAgain(): void {
    this.#unsubscribe?.();
    this.#unsubscribe = null;
    this.#load.abort();
    this.#load = new AbortController();
    this.#work?.();
    this.#program = null;
    this.#generation = null;
    this.#records = [];
    this.#past = null;
    this.#chosen = null;
    void this.#loadAll();
  }

  /** Brings the shown state up to the record that is wanted. A later call takes over. */
  #fold(): void {
    this.#work?.();
    this.#work = null;
    let finished = false;
    const stop = sliced(
      () => this.#foldOne(),
      () => {
        finished = true;
        this.#work = null;
        this.#requestDraw();
      },
    );
    if (!finished) this.#work = stop;
  }

  /** False if nothing is left to fold. */
  #foldOne(): boolean {
    const live = this.#live;
    if (live === null || this.#program === null) return false;
    if (this.#chosen === null || this.#chosen >= this.#records.length) return foldNext(live, this.#records);
    // Before a later record is an earlier one: it is folded from the start.
    if (this.#past === null || this.#past.seq > this.#chosen) this.#past = startFold(this.#program);
    return this.#past.seq < this.#chosen && foldNext(this.#past, this.#records);
  }

  #requestDraw(): void {
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = null;
      const shown = this.#chosen !== null && this.#chosen < this.#records.length ? this.#past : this.#live;
      // A fold is under way: it draws when it is finished.
      if (shown === null || this.#work !== null) return;
      this.picture.value = {
        state: shown.state,
        records: this.#records,
        seq: shown.seq,
        lastSeq: this.#records.length,
        isLive: shown === this.#live,
        engine: this.#engine,
      };
    });
  }
}

interface Fold {
  readonly state: RunState;
  /** The last record applied. */
  seq: number;
}

function startFold(program: Program): Fold {
  return { state: initialState(program), seq: 0 };
}

/** False if there is no further record. */
function foldNext(fold: Fold, records: readonly PageRecord[]): boolean {
  const record = records[fold.seq];
  if (record === undefined) return false;
  applyRecord(fold.state, record);
  fold.seq = record.seq;
  return true;
}
