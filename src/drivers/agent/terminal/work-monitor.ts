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
import { type AgentLimit, never, type WorkEnd } from '../host.ts';
import type { PromptDelivery } from './deliver-prompt.ts';
import type { DeliveryRecord } from './delivery-record.ts';
import type { HookLog } from './hook-log.ts';
import { idleDetector } from './idle-detector.ts';
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
  using monitor = workMonitor(request);
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
  return never();
}

/** Poll interval; output wakes the loop earlier. */
const POLL_MS = 2_000;
/** Shortest poll interval: a busy screen changes many times a second. */
const CALM_MS = 250;

function workMonitor({ ways, adapter, hooks, transcript, record, marker, prompt, save, note }: WorkRequest) {
  const { firstMs, idleMs: laterMs, failed: failedPatterns } = ways.liveness;
  const idle = idleDetector(ways, hooks);
  let silence: IdleWatch | null = null;
  let silentMs: number | null = null;
  let [hasShownLife, isAsked, isIdle] = [false, false, false];
  let [printed, events] = [transcript.size(), hooks?.events ?? 0];
  let isQueued = record?.state.kind === 'queued';
  let failedSince: number | null = null;
  let limit = record?.limit ?? null;
  if (isQueued) void note({ delivery: 'queued' });

  const watchLife = (idleMs: number | null): void => {
    silence?.close();
    if (idleMs === null) return;
    silence = new IdleWatch({
      idleMs,
      signs: () => processActivity(marker),
      toolInFlight: () => isAsked || (hooks?.toolInFlight === true && !isIdle),
      idle: () => {
        silentMs = idleMs;
      },
      background: true,
    });
  };
  watchLife(firstMs ?? laterMs);

  const noteLife = (): void => {
    const [printedBefore, eventsBefore] = [printed, events];
    [printed, events] = [transcript.size(), hooks?.events ?? 0];
    const hasPrinted = printed > printedBefore && !isIdle;
    if (!hasPrinted && events <= eventsBefore && !isAsked) return;
    if (!hasShownLife) watchLife(laterMs);
    hasShownLife = true;
    silence?.sign();
  };

  const limitOn = ({ text, isBusy }: Screen): AgentLimit | null => {
    const fresh = difference(limitsOn(text, adapter.limits), record?.limitsBefore ?? []);
    // A busy agent may only show a warning, or retry.
    const shown = isBusy ? '' : fresh.join('\n');
    const reported = limitIn(hooks?.failure?.message ?? '', adapter.limits, Date.now());
    const found = reported ?? limitIn(shown, adapter.limits, Date.now());
    if (found !== null) save({ limit: found });
    return found;
  };

  const failedOn = (screen: Screen, now: number): WorkEnd | null => {
    const texts = { said: prompt, before: record?.failuresBefore ?? [] };
    const error = hooks?.failure?.message ?? (isIdle ? errorAfter(screen, failedPatterns ?? [], texts) : null);
    failedSince = error === null || screen.isBusy || isAsked ? null : (failedSince ?? now);
    if (failedSince === null || now - failedSince < ways.timing.recoverMs) return null;
    const message = `the agent stopped with an error${error === '' ? '' : `: ${error}`}`;
    return { kind: 'over', outcome: { kind: 'failure', failure: failure('agent-crashed', message) } };
  };

  return {
    /** Null while the work continues. */
    observe(screen: Screen, now: number): WorkEnd | null {
      isAsked = screen.dialog !== null;
      isIdle = idle.observe(screen, now) && idle.canDetect;
      // A queued prompt begins when the work before it ends.
      if (isQueued && !screen.isQueued) {
        isQueued = false;
        save({ state: { kind: 'accepted' } });
        void note({ delivery: 'accepted' });
      }
      noteLife();
      limit ??= limitOn(screen);
      if (limit !== null) return { kind: 'limit', limit };
      if (silentMs === null) return failedOn(screen, now);
      const what = `for ${formatDuration(silentMs)} it has printed nothing, called no hook and done no work`;
      return { kind: 'idle', reason: `${what}; ${describeScreen(screen)}` };
    },
    [Symbol.dispose]: () => silence?.close(),
  };
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
