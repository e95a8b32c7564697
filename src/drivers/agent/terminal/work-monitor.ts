// Monitors an agent that works on a message: dialogs, limits, errors, silence. The agent itself reports normal
// completion, and its exit is reported elsewhere.
//
// work/1  A limit counts if it was not on the screen before the message, and after the agent became idle.
// work/2  Signs of life are output, hook events and process activity (agent/headless/idle-watch.ts); a running
//         tool counts as long as it runs. Output of an idle agent or during a dialog does not count.
// work/3  Time spent waiting for a person does not count as silence.
// work/4  An error counts if a hook reports it; or if it is at the end of the screen, newer than the message, and the
//         agent is idle.

import { formatDuration } from '../../../base/time.ts';
import type { Adapter } from '../../../ir/adapter.ts';
import { failure } from '../../../ir/failure.ts';
import { IdleWatch, processActivity } from '../headless/idle-watch.ts';
import { limitIn } from '../headless/limit.ts';
import type { AgentLimit, WorkEnd } from '../host.ts';
import type { PromptDelivery } from './deliver-prompt.ts';
import type { DeliveryRecord } from './delivery-record.ts';
import type { HookLog } from './hook-log.ts';
import { IdleDetector } from './idle-detector.ts';
import type { DialogDecision, PostDialog } from './post-dialog.ts';
import { pause } from './screen-watcher.ts';
import { describeScreen, errorAfter, limitsOn, type Screen } from './screen.ts';

export interface WorkRequest
  extends Pick<PromptDelivery, 'watcher' | 'ways' | 'transcript' | 'note' | 'isAlive' | 'dialogs'> {
  readonly adapter: Adapter;
  readonly hooks: Readonly<HookLog> | null;
  readonly marker: string;
  readonly over: AbortSignal;
  /** The message as it was put in; empty for a key. */
  readonly prompt: string;
  readonly record: DeliveryRecord | null;
  readonly save: (change: Partial<DeliveryRecord>) => void;
  readonly postDialog: PostDialog;
  /** Tells an agent that is idle after a decision to continue. */
  readonly resume: (decided: DialogDecision) => void;
}

/** Never resolves if the agent is gone or monitoring was stopped. */
export async function monitorWork(request: WorkRequest): Promise<WorkEnd> {
  const { watcher, over, isAlive, dialogs, postDialog, resume } = request;
  using monitor = new WorkMonitor(request);
  using _watch = watcher.watch();
  over.addEventListener('abort', () => watcher.wake());
  while (!over.aborted && isAlive()) {
    const since = watcher.changes;
    const screen = await watcher.observe();
    if (screen !== null) {
      await dialogs.handle(screen);
      const now = performance.now();
      const end = monitor.observe(screen, now);
      if (end !== null) return end;
      const decided = postDialog.observe(screen, now);
      if (decided !== null) resume(decided);
    }
    await watcher.untilChanged(since, POLL_MS, true);
    if (watcher.changes !== since) await pause(CALM_MS, true);
  }
  return new Promise(() => undefined);
}

/** Poll interval; output wakes the loop earlier. */
const POLL_MS = 2_000;
/** Shortest poll interval: a busy screen changes many times a second. */
const CALM_MS = 250;

class WorkMonitor {
  readonly #request: WorkRequest;
  readonly #idleDetector: IdleDetector;
  #silence: IdleWatch | null = null;
  #silentMs: number | null = null;
  #hasShownLife = false;
  #isAsked = false;
  #isIdle = false;
  #printed: number;
  #events: number;
  #isQueued: boolean;
  #failedSince: number | null = null;
  #limit: AgentLimit | null;

  constructor(request: WorkRequest) {
    const { ways, hooks, transcript, record, note } = request;
    this.#request = request;
    this.#idleDetector = new IdleDetector(ways, hooks);
    this.#limit = record?.limit ?? null;
    this.#printed = transcript.size();
    this.#events = hooks?.events ?? 0;
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
    if (this.#silentMs === null) return this.#failed(screen, now);
    const silence = `for ${formatDuration(this.#silentMs)} it has printed nothing, called no hook and done no work`;
    return { kind: 'idle', reason: `${silence}; ${describeScreen(screen)}` };
  }

  [Symbol.dispose](): void {
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
    const events = hooks?.events ?? 0;
    const hasPrinted = printed > this.#printed && screen.dialog === null && !this.#isIdle;
    const isSign = hasPrinted || events > this.#events || screen.dialog !== null;
    this.#printed = printed;
    this.#events = events;
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
    const { hooks, record, save } = this.#request;
    const { limits } = this.#request.adapter;
    const reported = hooks?.failure?.message ?? '';
    const fresh = difference(limitsOn(screen.text, limits), record?.limitsBefore ?? []);
    // A busy agent may only show a warning, or retry.
    const shown = screen.isBusy ? '' : fresh.join('\n');
    const limit = limitIn(reported, limits, Date.now()) ?? limitIn(shown, limits, Date.now());
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
    if (now - this.#failedSince < ways.timing.recoverMs) return null;
    const message = `the agent stopped with an error${error === '' ? '' : `: ${error}`}`;
    return { kind: 'over', outcome: { kind: 'failure', failure: failure('agent-crashed', message) } };
  }
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
