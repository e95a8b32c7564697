// Reads the output of a step from the run's files, for `meow logs` and other views.

import { dirname } from 'node:path';

import { storedStartOf } from '../drivers/agent/files.ts';
import { EventsAsText } from '../drivers/agent/readers/events-as-text.ts';
import { readerNamed } from '../drivers/agent/readers/named.ts';
import { TRANSCRIPT } from '../drivers/agent/terminal/agent.ts';
import { segmentNames } from '../drivers/agent/tmux/transcript-segments.ts';
import { exitIn, stepPrefixes } from '../drivers/step-folder.ts';
import type { RunFiles } from '../engine/ports.ts';
import { effectId, type RunState } from '../kernel/state.ts';
import { filledText } from '../view/status.ts';
import type { Adapters } from './adapters.ts';
import { type RedactingStream, redactorOfRun } from './redact.ts';
import type { ReadRun } from './runs.ts';

/** Prefix of the output files of an attempt. A long-lived agent prints for all its steps since it was started. */
export async function outputPrefix(files: RunFiles, state: RunState, step: string, attempt: number): Promise<string> {
  const [flat, folder] = stepPrefixes(step, attempt);
  for (const prefix of [flat, folder]) if (await hasOutput(files, prefix)) return prefix;
  const agent = state.steps.get(step)?.agent ?? null;
  const start = agent === null ? null : await storedStartOf(files, agent, effectId(step, attempt));
  return start === null ? flat : `${start.inRun}/`;
}

export async function hasOutput(files: RunFiles, prefix: string): Promise<boolean> {
  return (
    (await files.read(`${prefix}stdout`, 0, 0)) !== null || (await files.read(`${prefix}${TRANSCRIPT}`, 0, 0)) !== null
  );
}

/** Shows the events of an agent without a terminal as text; null for other outputs, which are text. */
export function eventsAsText(
  { state, records }: Pick<ReadRun, 'state' | 'records'>,
  { id, attempt, prefix }: { readonly id: string; readonly attempt: number; readonly prefix: string },
  adapters: Adapters,
): EventsAsText | null {
  if (!stepPrefixes(id, attempt).includes(prefix)) return null;
  const decisions = records.flatMap((record) => record.decisions);
  const started = decisions.find(
    (decision) => decision.kind === 'step-started' && decision.step === id && decision.attempt === attempt,
  );
  const effect = started?.kind === 'step-started' ? started.effect : null;
  const agent = effect?.kind === 'prompt' ? state.agents.get(filledText(effect.agent)) : null;
  const name = effect?.kind === 'turn' ? filledText(effect.adapter) : (agent?.info?.adapter ?? null);
  const adapter = name === null ? null : adapters.find(name)?.adapter;
  const reader = adapter?.headless ? readerNamed(adapter.headless.reader) : null;
  return reader?.ok ? EventsAsText.of(reader.value) : null;
}

/** Whether the attempt's own shell has recorded its exit status. */
export async function hasExited(files: RunFiles, prefix: string): Promise<boolean> {
  const status = await files.read(`${prefix}status`);
  return exitIn(status === null ? null : Buffer.from(status).toString('utf8')) !== null;
}

export type OutputPiece =
  | { readonly kind: 'bytes'; readonly stream: 'stdout' | 'stderr'; readonly bytes: Uint8Array }
  /** So many bytes of a long output were not kept. */
  | { readonly kind: 'gap'; readonly length: number };

/** Reads an output without its secrets. */
export class OutputReader {
  readonly #files: RunFiles;
  readonly #prefix: string;
  readonly #offsets = { stdout: 0, stderr: 0 };
  readonly #redacted: Readonly<Record<'stdout' | 'stderr', RedactingStream>>;

  constructor(files: RunFiles, prefix: string) {
    this.#files = files;
    this.#prefix = prefix;
    // Remote files were masked with the secrets of the run before they left its machine.
    const redactor = redactorOfRun(files.isRemote === undefined ? files.localPath('') : null);
    this.#redacted = { stdout: redactor.stream(), stderr: redactor.stream() };
  }

  get length(): number {
    return this.#offsets.stdout + this.#offsets.stderr;
  }

  /** What was not read before, up to the present end; a possible beginning of a secret is held back. */
  async *fresh(): AsyncGenerator<OutputPiece> {
    // Only a folder, of a long-lived agent, has segments. The folder of all steps may be large.
    const isFolder = this.#prefix.endsWith('/');
    const names = isFolder
      ? (await this.#files.list(dirname(`${this.#prefix}stdout`))).map(({ name }) => name)
      : ['stdout', 'stderr'];
    // A terminal shows both streams as one.
    yield* this.#freshIn('stdout', segmentNames(names, names.includes(TRANSCRIPT) ? TRANSCRIPT : 'stdout'));
    yield* this.#freshIn('stderr', segmentNames(names, 'stderr'));
  }

  /** What was held back, if nothing follows it. */
  *rest(): Generator<OutputPiece> {
    for (const stream of ['stdout', 'stderr'] as const)
      yield { kind: 'bytes', stream, bytes: this.#redacted[stream].end() };
  }

  async *#freshIn(stream: 'stdout' | 'stderr', segments: ReturnType<typeof segmentNames>): AsyncGenerator<OutputPiece> {
    for (const [index, { name, at }] of segments.entries()) {
      const next = segments[index + 1];
      if (next !== undefined && next.at <= this.#offsets[stream]) continue;
      if (at > this.#offsets[stream]) {
        yield { kind: 'gap', length: at - this.#offsets[stream] };
        this.#offsets[stream] = at;
      }
      for (;;) {
        const bytes = await this.#files.read(`${this.#prefix}${name}`, this.#offsets[stream] - at, CHUNK_BYTES);
        if (bytes === null || bytes.length === 0) break;
        this.#offsets[stream] += bytes.length;
        yield { kind: 'bytes', stream, bytes: this.#redacted[stream].push(bytes) };
      }
    }
  }
}

const CHUNK_BYTES = 1 << 20;
