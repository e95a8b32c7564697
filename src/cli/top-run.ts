// One run in `meow top`, as a tree. It is followed while an engine works on it; without an engine the fleet says when
// something has happened to it.

import { follow } from '../app/follow.ts';
import { storeOf } from '../app/runs.ts';
import { shownRun, type ShownRun } from '../app/shown-run.ts';
import { UsageError } from '../base/errors.ts';
import { sanitize } from '../base/sanitize.ts';
import { crash } from '../sys/errors.ts';
import type { FleetRun, FleetView } from '../view/fleet.ts';
import { cut, type Palette } from '../view/row.ts';
import { treeLines } from '../view/tree-lines.ts';
import { isAscii } from './reporters.ts';
import type { ScreenSize } from './screen.ts';
import type { PlacedRun } from './top-commands.ts';

export class OpenRun {
  readonly #placed: PlacedRun;
  readonly #changed: () => void;
  #run: FleetRun;
  #shown: ShownRun | null = null;
  #problem: string | null = null;
  #pass = new AbortController();
  #wake = (): void => {};
  #closed = false;

  constructor(placed: PlacedRun, run: FleetRun, changed: () => void) {
    this.#placed = placed;
    this.#run = run;
    this.#changed = changed;
    this.#showAll().catch(crash);
  }

  /** As the fleet shows it now. */
  get run(): FleetRun {
    return this.#run;
  }

  close(): void {
    this.#closed = true;
    this.#pass.abort();
    this.#wake();
  }

  moves(): boolean {
    return this.#shown !== null && !this.#shown.interrupted && this.#shown.state.phase !== 'ended';
  }

  /** Call when the fleet has changed: the run may have another engine, or a decision. */
  refresh({ runs }: FleetView): void {
    const run = runs.find(({ project, id }) => project === this.#run.project && id === this.#run.id);
    if (run === undefined || run === this.#run) return;
    this.#run = run;
    if (this.#shown?.engine?.pid !== run.engine?.pid) this.#pass.abort();
    this.#wake();
  }

  lines({ width, height }: ScreenSize, palette: Palette): readonly string[] {
    if (this.#problem !== null) return [palette.red(cut(sanitize(this.#problem), width))];
    if (this.#shown === null) return [`reading run ${this.#placed.id}`];
    const { state, interrupted } = this.#shown;
    const now = interrupted ? this.#shown.now : Date.now();
    return treeLines(state, { width, height, now, interrupted, palette, ascii: isAscii(), closing: false });
  }

  async #showAll(): Promise<void> {
    while (!this.#closed) {
      this.#pass = new AbortController();
      const refreshed = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await this.#showOnce(this.#pass.signal);
      this.#changed();
      if (!this.#closed && !this.#pass.signal.aborted) await refreshed;
    }
  }

  /** Resolves when no engine works on the run any more, or something else must be shown. */
  async #showOnce(signal: AbortSignal): Promise<void> {
    const { project, id } = this.#placed;
    const store = storeOf(project);
    try {
      await follow(
        store,
        id,
        async (run) => {
          this.#shown = await shownRun(store, run, project);
          this.#problem = null;
          this.#changed();
          return this.#shown.engine !== null;
        },
        () => false,
        signal,
      );
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      this.#problem = error.hint === null ? error.message : `${error.message}: ${error.hint}`;
    }
  }
}
