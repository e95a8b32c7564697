// Watches over an agent that has a message and works on it: what it asks, limits that it reaches, errors that it does not go
// on from, silence. Ordinary ends are reported by the agent itself, and that it is gone is told by others.
//
// L1  A limit counts if it was not on the screen before the message was; and once the agent has come to rest over it.
// L2  Signs of life are what is printed, what hooks tell, and what its processes do (drivers/agent/headless/process-activity.ts); a tool that runs is
//     one for as long as it does. What is printed by an agent that rests, or while it asks something, is none.
// L3  Nobody is too long silent who waits for a person.
// L4  An error counts if a hook tells of it; or if the end of the screen does, the agent rests over it, and it came after the
//     message. What stands anywhere else on the screen is none.

import type { Note } from '../../../engine/ports.ts';
import type { Adapter, TerminalWays } from '../../../ir/adapter.ts';
import { failure } from '../../../ir/failure.ts';
import { formatDuration } from '../../../base/time.ts';
import type { AgentLimit, WorkEnd } from '../host.ts';
import { IdleWatch } from '../headless/idle-watch.ts';
import { lifeSigns } from '../headless/process-activity.ts';
import { limitIn } from '../headless/limit.ts';
import type { AfterAnswer, Decided } from './post-dialog.ts';
import type { Console } from './screen-watcher.ts';
import type { DeliveryRecord } from './delivery-record.ts';
import type { HookLog } from './hook-log.ts';
import { Rest } from './idle-detector.ts';
import { failureAfter, limitsOn, shownBy } from './screen.ts';
import type { Screen } from './screen.ts';
import type { Transcript } from './transcript.ts';

export interface WorkRequest {
  readonly adapter: Adapter;
  readonly ways: TerminalWays;
  readonly hooks: HookLog | null;
  readonly transcript: Transcript;
  /** Of its processes. */
  readonly marker: string;
  /** An agent that has run into an error may go on by itself for so long. */
  readonly failedMs: number;
  readonly over: AbortSignal;
  readonly note: Note;
  readonly isAlive: () => boolean;
  /** The message, as it was put in; empty where it was none of words. */
  readonly said: string;
  /** As its delivery left it. */
  readonly record: DeliveryRecord | null;
  readonly keep: (change: Partial<DeliveryRecord>) => void;
  /** Deals with what the agent asks, if it does. */
  readonly mind: (screen: Screen) => Promise<void>;
  readonly after: AfterAnswer;
  /** The agent rests over what was decided. */
  readonly goOn: (decided: Decided) => void;
}

/** Never resolves where the agent is gone, or is not watched any more. */
export async function watchWork(console: Console, request: WorkRequest): Promise<WorkEnd> {
  const watching = new Work(request);
  using _ = console.watch();
  request.over.addEventListener('abort', () => console.wake());
  try {
    while (!request.over.aborted && request.isAlive()) {
      const since = console.changes;
      const screen = await console.look();
      if (screen !== null) {
        await request.mind(screen);
        const now = performance.now();
        const end = watching.see(screen, now);
        if (end !== null) return end;
        const rested = request.after.see(screen, now);
        if (rested !== null) request.goOn(rested);
      }
      await console.changed(since, { ms: LOOK_MS, calmMs: CALM_MS, background: true });
    }
  } finally {
    watching.close();
  }
  return new Promise(() => undefined);
}

/** What is printed wakes us; this is for what is not. */
const LOOK_MS = 2_000;
/** A screen at work changes many times a second. */
const CALM_MS = 250;

class Work {
  readonly #request: WorkRequest;
  readonly #rest: Rest;
  readonly #limitsBefore: readonly string[];
  #idle: IdleWatch | null = null;
  #isIdle: number | null = null;
  #hasShownLife = false;
  #isAsked = false;
  #isResting = false;
  #printed: number;
  #told: number;
  #isQueued: boolean;
  #failedSince: number | null = null;
  #limit: AgentLimit | null;

  constructor(request: WorkRequest) {
    const { ways, hooks, transcript, record, note } = request;
    this.#request = request;
    this.#rest = new Rest(ways, hooks);
    this.#limitsBefore = record?.limitsBefore ?? [];
    this.#limit = record?.limit ?? null;
    this.#printed = transcript.size();
    this.#told = hooks?.events ?? 0;
    this.#isQueued = record?.state.kind === 'queued';
    if (this.#isQueued) void note({ delivery: 'queued' });
    const { firstMs, idleMs } = ways.liveness;
    this.#watchLife(firstMs ?? idleMs);
  }

  /** Null: it goes on. */
  see(screen: Screen, now: number): WorkEnd | null {
    this.#isAsked = screen.dialog !== null;
    this.#isResting = this.#rest.see(screen, now) && this.#rest.isTold;
    this.#noteBegun(screen);
    this.#noteLife(screen);
    this.#limit ??= this.#limitOn(screen);
    if (this.#limit !== null) return { kind: 'limit', limit: this.#limit };
    if (this.#isIdle !== null) return { kind: 'idle', reason: silence(this.#isIdle, screen) };
    return this.#failed(screen, now);
  }

  close(): void {
    this.#idle?.close();
  }

  /** What was queued is begun with when the work before it is over. */
  #noteBegun({ isQueued }: Screen): void {
    const { keep, note } = this.#request;
    if (!this.#isQueued || isQueued) return;
    this.#isQueued = false;
    keep({ state: { kind: 'accepted' } });
    void note({ delivery: 'accepted' });
  }

  #noteLife(screen: Screen): void {
    const { hooks, transcript } = this.#request;
    const printed = transcript.size();
    const told = hooks?.events ?? 0;
    const hasPrinted = printed > this.#printed && screen.dialog === null && !this.#isResting;
    const isSign = hasPrinted || told > this.#told || screen.dialog !== null;
    this.#printed = printed;
    this.#told = told;
    if (!isSign) return;
    if (!this.#hasShownLife) {
      this.#hasShownLife = true;
      this.#watchLife(this.#request.ways.liveness.idleMs);
    }
    this.#idle?.sign();
  }

  #watchLife(idleMs: number | null): void {
    this.#idle?.close();
    if (idleMs === null) return;
    this.#idle = new IdleWatch({
      idleMs,
      signs: () => lifeSigns(this.#request.marker),
      toolInFlight: () => this.#isAsked || (this.#request.hooks?.toolInFlight === true && !this.#isResting),
      idle: () => {
        this.#isIdle = idleMs;
      },
      background: true,
    });
  }

  #limitOn(screen: Screen): AgentLimit | null {
    const { adapter, hooks, keep } = this.#request;
    const told = hooks?.failure?.message ?? '';
    const fresh = difference(limitsOn(screen.text, adapter.limits), this.#limitsBefore);
    // One that is still at work may only warn, or try again.
    const shown = screen.isBusy ? '' : fresh.join('\n');
    const limit = limitIn(told, adapter.limits, Date.now()) ?? limitIn(shown, adapter.limits, Date.now());
    if (limit !== null) keep({ limit });
    return limit;
  }

  #failed(screen: Screen, now: number): WorkEnd | null {
    const { hooks, ways, said, record } = this.#request;
    const before = record?.failuresBefore ?? [];
    const shown = this.#isResting ? failureAfter(screen, ways.liveness.failed ?? [], { said, before }) : null;
    const error = hooks?.failure?.message ?? shown;
    if (error === null || screen.isBusy || screen.dialog !== null) {
      this.#failedSince = null;
      return null;
    }
    this.#failedSince ??= now;
    if (now - this.#failedSince < this.#request.failedMs) return null;
    const message = `the agent has come to rest with an error${error === '' ? '' : `: ${error}`}`;
    return { kind: 'over', outcome: { kind: 'failure', failure: failure('agent-crashed', message) } };
  }
}

function silence(ms: number, screen: Screen): string {
  return `for ${formatDuration(ms)} it has printed nothing, called no hook and done no work; ${shownBy(screen)}`;
}

/** Those that come more often than before. */
function difference(now: readonly string[], before: readonly string[]): readonly string[] {
  const left = [...before];
  return now.filter((each) => {
    const at = left.indexOf(each);
    if (at !== -1) left.splice(at, 1);
    return at === -1;
  });
}
