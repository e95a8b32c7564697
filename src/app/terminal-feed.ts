// What the terminal of an agent prints, from its transcript: nothing is asked of tmux, so watching cannot disturb it.
//
//   terminal-feed/1  Bytes come in order, each once. Of a long transcript the middle is not kept.
//   terminal-feed/2  Secrets are masked. What may be the beginning of one waits HELD_MS for its end.

import { dirname } from 'node:path';

import { segmentNames } from '../drivers/agent/tmux/transcript-segments.ts';
import { lastWords } from '../drivers/agent/terminal/transcript.ts';
import { COLUMNS, ROWS } from '../drivers/agent/terminal/host.ts';
import { redactorOfRun } from './redact.ts';
import type { Store } from './runs.ts';
import { transcriptOf } from './type-keys.ts';

/** Of all terminals that meow opens, also while somebody attaches to one. */
export const PANE_SIZE = { columns: COLUMNS, rows: ROWS };

export interface TerminalPiece {
  /** Offsets in the transcript. */
  readonly from: number;
  readonly to: number;
  /** Without secrets: there may be more or fewer than from `from` to `to`. */
  readonly bytes: Uint8Array;
}

const PIECE_BYTES = 128 * 1024;
const HELD_MS = 150;

/** `from` < 0 counts from the end. Ends when the signal aborts, at once if the agent has no terminal. */
export async function* terminalFeed(
  store: Store,
  id: string,
  agent: string,
  from: number,
  signal: AbortSignal,
): AsyncGenerator<TerminalPiece> {
  const path = await transcriptOf(store, id, agent);
  if (path === null) return;
  const files = store.files(id);
  const redactor = redactorOfRun(files.localPath(''));
  let masked = redactor.stream();
  let next: number | null = null;
  const changes = files.changes(dirname(path), signal)[Symbol.asyncIterator]();
  let changed = changes.next();
  let isHeld = false;
  for (;;) {
    const event = isHeld ? await Promise.race([changed, pause(HELD_MS)]) : await changed;
    if (signal.aborted || (event !== null && event.done === true)) return;
    if (event === null) {
      isHeld = false;
      const rest = masked.end();
      masked = redactor.stream();
      if (rest.length > 0 && next !== null) yield { from: next, to: next, bytes: rest };
      continue;
    }
    changed = changes.next();
    const segments = segmentNames(
      (await files.list(dirname(path))).map(({ name }) => name),
      'transcript',
    );
    for (const [index, { name, at }] of segments.entries()) {
      const file = `${dirname(path)}/${name}`;
      next ??= await startOf(store, id, dirname(path), segments, from);
      const end = segments[index + 1]?.at ?? null;
      if (end !== null && end <= next) continue;
      next = Math.max(next, at);
      for (;;) {
        const bytes = await files.read(file, next - at, PIECE_BYTES);
        if (signal.aborted) return;
        if (bytes === null || bytes.length === 0) break;
        const begin = next;
        next += bytes.length;
        yield { from: begin, to: next, bytes: masked.push(bytes) };
        isHeld = true;
      }
    }
  }
}

type Segments = ReturnType<typeof segmentNames>;

async function startOf(store: Store, id: string, folder: string, segments: Segments, from: number): Promise<number> {
  if (from >= 0) return from;
  const last = segments.at(-1);
  const sizes = await store.files(id).list(folder);
  const size = sizes.find(({ name }) => name === last?.name)?.size ?? 0;
  return Math.max(0, (last?.at ?? 0) + size + from);
}

function pause(ms: number): Promise<null> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms, null).unref();
  });
}

const TAIL_BYTES = 32 * 1024;

/** The last lines that the terminal of an agent has printed, for a list of agents. Empty if it has none. */
export class TerminalTails {
  readonly #known = new Map<string, { readonly size: number; readonly lines: readonly string[] }>();

  async of(store: Store, id: string, agent: string, count: number): Promise<readonly string[]> {
    const path = await transcriptOf(store, id, agent);
    if (path === null) return [];
    const files = store.files(id);
    const segments = segmentNames(
      (await files.list(dirname(path))).map(({ name }) => name),
      'transcript',
    );
    const last = segments.at(-1);
    if (last === undefined) return [];
    const file = `${dirname(path)}/${last.name}`;
    const size = (await files.list(dirname(path))).find(({ name }) => name === last.name)?.size ?? 0;
    const known = this.#known.get(files.localPath(file));
    if (known?.size === size) return known.lines;
    const bytes = (await files.read(file, Math.max(0, size - TAIL_BYTES), TAIL_BYTES)) ?? new Uint8Array();
    const text = redactorOfRun(files.localPath('')).redactBytes(bytes).toString('utf8');
    const lines = (lastWords(text) ?? '').split('\n').slice(-count);
    this.#known.set(files.localPath(file), { size, lines });
    return lines;
  }
}
