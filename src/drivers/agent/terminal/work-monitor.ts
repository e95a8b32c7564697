// Monitors an agent that works on a message: dialogs, limits, errors, silence. The agent itself reports normal
// completion, and its exit is reported elsewhere.
//
// work/1  A limit counts if it was not on the screen before the message, and after the agent became idle.
// work/2  Signs of life are output, hook events and process activity (agent/headless/process-activity.ts); a running
//         tool counts as long as it runs. Output of an idle agent or during a dialog does not count.
// work/3  Time spent waiting for a person does not count as silence.
// work/4  An error counts if a hook reports it; or if it is at the end of the screen, newer than the message, and the
//         agent is idle.

import type { Note } from '../../../engine/ports.ts';
import type { Adapter, TerminalProfile } from '../../../ir/adapter.ts';
import { failure } from '../../../ir/failure.ts';
import { formatDuration } from '../../../base/time.ts';
import type { AgentLimit, WorkEnd } from '../host.ts';
import { IdleWatch } from '../headless/idle-watch.ts';
import { processActivity } from '../headless/process-activity.ts';
import { limitIn } from '../headless/limit.ts';
import type { PostDialog, DialogDecision } from './post-dialog.ts';
import type { ScreenWatcher } from './screen-watcher.ts';
import type { DeliveryRecord } from './delivery-record.ts';
import type { HookLog } from './hook-log.ts';
import { IdleDetector } from './idle-detector.ts';
import { errorAfter, limitsOn, describeScreen } from './screen.ts';
import type { Screen } from './screen.ts';
import type { Transcript } from './transcript.ts';

export interface WorkRequest {
  readonly adapter: Adapter;
  readonly ways: TerminalProfile;
  readonly hooks: HookLog | null;
  readonly transcript: Transcript;
  /** Marker of the agent's processes. */
  readonly marker: string;
  /** Time for an agent with an error to recover by itself. */
  readonly failedMs: number;
  readonly over: AbortSignal;
  readonly note: Note;
  readonly isAlive: () => boolean;
  /** The message as it was put in; empty for a key. */
  readonly prompt: string;
  /** Result of the delivery. */
  readonly record: DeliveryRecord | null;
  readonly save: (change: Partial<DeliveryRecord>) => void;
  /** Handles a dialog, if the screen shows one. */
  readonly handleDialog: (screen: Screen) => Promise<void>;
  readonly postDialog: PostDialog;
  /** Tells an agent that is idle after a decision to continue. */
  readonly resume: (decided: DialogDecision) => void;
}

/** Never resolves if the agent is gone or monitoring was stopped. */
export async function monitorWork(watcher: ScreenWatcher, request: WorkRequest): Promise<WorkEnd> {
  const watching = new WorkMonitor(request);
  using _ = watcher.watch();
  request.over.addEventListener('abort', () => watcher.wake());
  try {
    while (!request.over.aborted && request.isAlive()) {
      const since = watcher.changes;
      const screen = await watcher.observe();
      if (screen !== null) {
        await request.handleDialog(screen);
        const now = performance.now();
        const end = watching.observe(screen, now);
        if (end !== null) return end;
        const rested = request.postDialog.observe(screen, now);
        if (rested !== null) request.resume(rested);
      }
      await watcher.untilChanged(since, { ms: POLL_MS, calmMs: CALM_MS, background: true });
    }
  } finally {
    watching.close();
  }
  return new Promise(() => undefined);
}

/** Poll interval; output wakes the loop earlier. */
const POLL_MS = 2_000;
/** A busy screen changes many times a second. */
const CALM_MS = 250;

class WorkMonitor {
  readonly #request: WorkRequest;
  readonly #idleDetector: IdleDetector;
  readonly #limitsBefore: readonly string[];
  #silence: IdleWatch | null = null;
  #silentMs: number | null = null;
  #hasShownLife = false;
  #isAsked = false;
  #isIdle = false;
  #printed: number;
  #told: number;
  #isQueued: boolean;
  #failedSince: number | null = null;
  #limit: AgentLimit | null;

  constructor(request: WorkRequest) {
    const { ways, hooks, transcript, record, note } = request;
    this.#request = request;
    this.#idleDetector = new IdleDetector(ways, hooks);
    this.#limitsBefore = record?.limitsBefore ?? [];
    this.#limit = record?.limit ?? null;
    this.#printed = transcript.size();
    this.#told = hooks?.events ?? 0;
    this.#isQueued = record?.state.kind === 'queued';
    if (this.#isQueued) void note({ delivery: 'queued' });
    const { firstMs, idleMs } = ways.liveness;
    this.#watchLife(firstMs ?? idleMs);
  }

  /** Null while the work continues. */
  observe(screen: Screen, now: number): WorkEnd | null {
    this.#isAsked = screen.dialog !== null;
    this.#isIdle = this.#idleDetector.observe(screen, now) && this.#idleDetector.canDetect;
    this.#noteBegun(screen);
    this.#noteLife(screen);
    this.#limit ??= this.#limitOn(screen);
    if (this.#limit !== null) return { kind: 'limit', limit: this.#limit };
    if (this.#silentMs !== null) return { kind: 'idle', reason: silence(this.#silentMs, screen) };
    return this.#failed(screen, now);
  }

  close(): void {
    this.#silence?.close();
  }

  /** A queued prompt begins when the work before it ends. */
  #noteBegun({ isQueued }: Screen): void {
    const { save, note } = this.#request;
    if (!this.#isQueued || isQueued) return;
    this.#isQueued = false;
    save({ state: { kind: 'accepted' } });
    void note({ delivery: 'accepted' });
  }

  #noteLife(screen: Screen): void {
    const { hooks, transcript } = this.#request;
    const printed = transcript.size();
    const told = hooks?.events ?? 0;
    const hasPrinted = printed > this.#printed && screen.dialog === null && !this.#isIdle;
    const isSign = hasPrinted || told > this.#told || screen.dialog !== null;
    this.#printed = printed;
    this.#told = told;
    if (!isSign) return;
    if (!this.#hasShownLife) {
      this.#hasShownLife = true;
      this.#watchLife(this.#request.ways.liveness.idleMs);
    }
    this.#silence?.sign();
  }

  #watchLife(idleMs: number | null): void {
    this.#silence?.close();
    if (idleMs === null) return;
    this.#silence = new IdleWatch({
      idleMs,
      signs: () => processActivity(this.#request.marker),
      toolInFlight: () => this.#isAsked || (this.#request.hooks?.toolInFlight === true && !this.#isIdle),
      idle: () => {
        this.#silentMs = idleMs;
      },
      background: true,
    });
  }

  #limitOn(screen: Screen): AgentLimit | null {
    const { adapter, hooks, save } = this.#request;
    const told = hooks?.failure?.message ?? '';
    const fresh = difference(limitsOn(screen.text, adapter.limits), this.#limitsBefore);
    // A busy agent may only show a warning, or retry.
    const shown = screen.isBusy ? '' : fresh.join('\n');
    const limit = limitIn(told, adapter.limits, Date.now()) ?? limitIn(shown, adapter.limits, Date.now());
    if (limit !== null) save({ limit });
    return limit;
  }

  #failed(screen: Screen, now: number): WorkEnd | null {
    const { hooks, ways, prompt: said, record } = this.#request;
    const before = record?.failuresBefore ?? [];
    const shown = this.#isIdle ? errorAfter(screen, ways.liveness.failed ?? [], { said, before }) : null;
    const error = hooks?.failure?.message ?? shown;
    if (error === null || screen.isBusy || screen.dialog !== null) {
      this.#failedSince = null;
      return null;
    }
    this.#failedSince ??= now;
    if (now - this.#failedSince < this.#request.failedMs) return null;
    const message = `the agent stopped with an error${error === '' ? '' : `: ${error}`}`;
    return { kind: 'over', outcome: { kind: 'failure', failure: failure('agent-crashed', message) } };
  }
}

function silence(ms: number, screen: Screen): string {
  return `for ${formatDuration(ms)} it has printed nothing, called no hook and done no work; ${describeScreen(screen)}`;
}

/** Items that occur more often than before. */
function difference(now: readonly string[], before: readonly string[]): readonly string[] {
  const left = [...before];
  return now.filter((each) => {
    const at = left.indexOf(each);
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
}
