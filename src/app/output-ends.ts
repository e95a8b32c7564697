// The ends of all outputs of a run, for a file that shows the run without its folder.

import type { RunFiles } from '../engine/ports.ts';
import { effectId } from '../kernel/state.ts';
import { Adapters } from './adapters.ts';
import type { Project } from './project.ts';
import type { ReadRun, Store } from './runs.ts';
import { eventsAsText, type OutputPiece, outputPrefix, OutputReader } from './step-output.ts';

export interface OutputEnd {
  /** `text`: the messages among the events of an agent without a terminal. */
  readonly stream: 'stdout' | 'stderr' | 'text';
  /** Position of the first byte of `text` in the output. */
  readonly from: number;
  /** Of the whole output, in bytes. */
  readonly size: number;
  readonly text: string;
}

/** All outputs together have at most about this many bytes. */
const ALL_BYTES_MAX = 32 << 20;
const END_BYTES_MIN = 1 << 10;
const END_BYTES_MAX = 1 << 18;

/** By `STEP#ATTEMPT`, without attempts that printed nothing. */
export async function outputEnds(
  project: Project,
  store: Store,
  run: ReadRun,
): Promise<Readonly<Record<string, readonly OutputEnd[]>>> {
  const attempts = [...run.state.steps.values()].flatMap(({ id, attempt, keptFrom }) =>
    keptFrom === null ? Array.from({ length: attempt }, (_, index) => ({ id, attempt: index + 1 })) : [],
  );
  const share = ALL_BYTES_MAX / Math.max(1, attempts.length);
  const endBytes = Math.floor(Math.min(END_BYTES_MAX, Math.max(END_BYTES_MIN, share)));
  const files = store.files(run.id);
  const adapters = new Adapters(project);
  const found: [string, readonly OutputEnd[]][] = [];
  for (const { id, attempt } of attempts) {
    const ends = await endsOf(run, { id, attempt, files, adapters }, endBytes);
    if (ends.length > 0) found.push([effectId(id, attempt), ends]);
  }
  return Object.fromEntries(found);
}

interface Printing {
  readonly id: string;
  readonly attempt: number;
  readonly files: RunFiles;
  readonly adapters: Adapters;
}

async function endsOf(
  run: ReadRun,
  { id, attempt, files, adapters }: Printing,
  endBytes: number,
): Promise<readonly OutputEnd[]> {
  const prefix = await outputPrefix(files, run.state, id, attempt);
  const events = eventsAsText(run, { id, attempt, prefix }, adapters);
  const ends = { text: new Tail(endBytes), stdout: new Tail(endBytes), stderr: new Tail(endBytes) };
  const add = (piece: OutputPiece): void => {
    if (piece.kind === 'gap') return;
    ends[piece.stream].add(piece.bytes);
    if (events !== null && piece.stream === 'stdout') ends.text.add(Buffer.from(events.add(piece.bytes)));
  };
  const output = new OutputReader(files, prefix);
  for await (const piece of output.fresh()) add(piece);
  for (const piece of output.rest()) add(piece);
  if (events !== null) ends.text.add(Buffer.from(events.end()));
  return (['text', 'stdout', 'stderr'] as const).flatMap((stream) => {
    const { size } = ends[stream];
    return size === 0 ? [] : [{ stream, size, ...ends[stream].end() }];
  });
}

/** The last bytes of a stream. */
class Tail {
  readonly #most: number;
  #bytes: Buffer = Buffer.alloc(0);
  size = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(bytes: Uint8Array): void {
    this.size += bytes.length;
    const all = Buffer.concat([this.#bytes, bytes]);
    this.#bytes = all.subarray(Math.max(0, all.length - this.#most));
  }

  /** Begins with a whole character, and with a whole line if it has several. */
  end(): Pick<OutputEnd, 'from' | 'text'> {
    const cut = this.size > this.#bytes.length;
    const newline = cut ? this.#bytes.indexOf('\n') : -1;
    const isContinued = (byte: number): boolean => (byte & 0xc0) === 0x80;
    const whole = cut ? this.#bytes.findIndex((byte) => !isContinued(byte)) : 0;
    const bytes = this.#bytes.subarray(newline < 0 ? Math.max(0, whole) : newline + 1);
    return { from: this.size - bytes.length, text: bytes.toString('utf8') };
  }
}
