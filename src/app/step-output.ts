// Reads the output of a step from the run's files, for `meow logs` and other views.

import { storedStartOf } from '../drivers/agent/files.ts';
import { TRANSCRIPT } from '../drivers/agent/terminal/agent.ts';
import { segmentNames } from '../drivers/agent/tmux/transcript-segments.ts';
import { exitIn, stepPath } from '../drivers/step-folder.ts';
import type { RunFiles } from '../engine/ports.ts';
import type { RunState } from '../kernel/state.ts';
import { effectId } from '../kernel/state.ts';

/**
 * The folder with the output of an attempt. A long-lived agent prints into a folder of its own, for all its steps since it
 * was started; an agent that is started for each prompt prints for its step.
 */
export async function outputFolder(files: RunFiles, state: RunState, step: string, attempt: number): Promise<string> {
  const own = stepPath(step, attempt);
  const agent = state.steps.get(step)?.agent ?? null;
  if (agent === null || (await files.list(own)).some(({ name }) => name === 'stdout')) return own;
  return (await storedStartOf(files, agent, effectId(step, attempt)))?.inRun ?? own;
}

/** Whether the attempt's own shell has recorded its exit status. */
export async function hasExited(files: RunFiles, folder: string): Promise<boolean> {
  const status = await files.read(`${folder}/status`);
  return exitIn(status === null ? null : Buffer.from(status).toString('utf8')) !== null;
}

export type OutputPiece =
  | { readonly kind: 'bytes'; readonly stream: 'stdout' | 'stderr'; readonly bytes: Uint8Array }
  /** So many bytes of a long output were not kept. */
  | { readonly kind: 'gap'; readonly length: number };

/** Reads an output that may still grow. */
export class OutputReader {
  readonly #files: RunFiles;
  readonly #folder: string;
  readonly #offsets = { stdout: 0, stderr: 0 };

  constructor(files: RunFiles, folder: string) {
    this.#files = files;
    this.#folder = folder;
  }

  /** How far it has been read. */
  get length(): number {
    return this.#offsets.stdout + this.#offsets.stderr;
  }

  /** What was not read before, up to the present end. */
  async *fresh(): AsyncGenerator<OutputPiece> {
    const names = (await this.#files.list(this.#folder)).map(({ name }) => name);
    // A terminal shows both streams as one.
    yield* this.#freshIn('stdout', segmentNames(names, names.includes(TRANSCRIPT) ? TRANSCRIPT : 'stdout'));
    yield* this.#freshIn('stderr', segmentNames(names, 'stderr'));
  }

  async *#freshIn(
    stream: 'stdout' | 'stderr',
    segments: readonly { readonly name: string; readonly at: number }[],
  ): AsyncGenerator<OutputPiece> {
    for (const [index, { name, at }] of segments.entries()) {
      const next = segments[index + 1];
      if (next !== undefined && next.at <= this.#offsets[stream]) continue;
      if (at > this.#offsets[stream]) {
        yield { kind: 'gap', length: at - this.#offsets[stream] };
        this.#offsets[stream] = at;
      }
      for (;;) {
        const bytes = await this.#files.read(`${this.#folder}/${name}`, this.#offsets[stream] - at, CHUNK_BYTES);
        if (bytes === null || bytes.length === 0) break;
        this.#offsets[stream] += bytes.length;
        yield { kind: 'bytes', stream, bytes };
      }
    }
  }
}

const CHUNK_BYTES = 1 << 20;
