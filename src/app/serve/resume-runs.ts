// Resumes runs whose engine has died. The journal says how often that was tried: an engine that dies again and again before a
// step has finished is started after ever longer pauses, and finally not at all.

import { present, UsageError } from '../../base/errors.ts';
import type { JournalRecord } from '../../kernel/decision.ts';
import { startEngine } from '../engine-process.ts';
import type { Fleet } from '../fleet.ts';
import type { Project } from '../project.ts';
import { storeOf, unlessRefused } from '../runs.ts';
import { isRecoverable } from './scheduler.ts';

export interface ResumerOptions {
  readonly environment: Readonly<Record<string, string>>;
  note(line: string): void;
  /** Called once for each run that is given up. */
  stuck(project: Project, run: string, why: string): void;
}

const TRIES_MAX = 5;
/** So long a new run belongs to whatever has created it, and is about to start an engine. */
const NEW_RUN_MS = 10_000;
/** Engines that start at once. */
const AT_ONCE = 2;

export class Resumer {
  readonly #options: ResumerOptions;
  /** By project and run. */
  readonly #attempts = new Map<string, Attempt>();
  readonly #starting = new Set<string>();

  constructor(options: ResumerOptions) {
    this.#options = options;
  }

  /** Starts engines in the background. Returns when to call again; null if only a change of the fleet can bring work. */
  async pass({ view, projects }: Fleet): Promise<number | null> {
    let wake: number | null = null;
    const known = new Set<string>();
    for (const { project: name, id, interrupted } of view.runs) {
      if (!interrupted) continue;
      const project = present(
        projects.find((each) => each.name === name),
        'the project of a run',
      );
      const key = `${project.meow}\n${id}`;
      known.add(key);
      const at = this.#starting.has(key) ? null : await this.#consider(project, id, key);
      if (at !== null && (wake === null || at < wake)) wake = at;
    }
    for (const key of this.#attempts.keys()) if (!known.has(key)) this.#attempts.delete(key);
    return wake;
  }

  async #consider(project: Project, id: string, key: string): Promise<number | null> {
    const store = storeOf(project);
    const stored = await unlessRefused(store.read(id), null);
    const last = stored?.records.at(-1);
    const folder = store.files(id).localPath('');
    if (stored === null || last === undefined || !isRecoverable(folder, last)) return null;
    const attempt = this.#attempts.get(key) ?? { refused: 0, isGivenUp: false };
    this.#attempts.set(key, attempt);
    const tries = Math.max(triesSince(stored.records), attempt.refused);
    if (tries >= TRIES_MAX) {
      if (!attempt.isGivenUp)
        this.#options.stuck(project, id, `its engine ended ${tries} times before a step had finished`);
      attempt.isGivenUp = true;
      return null;
    }
    const now = Date.now();
    const dueAt = last.at + (last.seq === 1 ? NEW_RUN_MS : tries === 0 ? 0 : 1_000 * 2 ** (tries - 1));
    // A clock that was set back must not delay it.
    const waitMs = Math.min(dueAt - now, PAUSE_MAX_MS);
    if (waitMs > 0) return now + waitMs;
    if (this.#starting.size >= AT_ONCE) return now + BUSY_MS;
    this.#starting.add(key);
    void this.#start(project, id, folder, attempt).finally(() => this.#starting.delete(key));
    return null;
  }

  async #start(project: Project, id: string, folder: string, attempt: Attempt): Promise<void> {
    try {
      await startEngine(id, folder, project.meow, ['--only-pending'], this.#options.environment);
      this.#options.note(`resumed run ${id}`);
      attempt.refused = 0;
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      // Somebody else may have been faster.
      if ((await unlessRefused(storeOf(project).holder(id), null)) !== null) return;
      attempt.refused += 1;
      this.#options.note(`run ${id} cannot be resumed: ${error.message.split('\n')[0] ?? ''}`);
    }
  }
}

const PAUSE_MAX_MS = 30_000;
const BUSY_MS = 200;

interface Attempt {
  refused: number;
  isGivenUp: boolean;
}

/** How often engines were started since a step finished for the last time. */
function triesSince(records: readonly JournalRecord[]): number {
  let tries = 0;
  for (const { input, decisions } of records.toReversed()) {
    if (decisions.some(({ kind }) => kind === 'step-done' || kind === 'step-failed')) return tries;
    if (input.kind === 'run-resumed') tries += 1;
  }
  return tries;
}
