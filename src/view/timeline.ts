// A run's journal as lines for people and as objects for scripts. Data only; `timeline-lines.ts` prints it. Each record
// gives the lines for what changed in a step or in the run. Internal records give none, and similar changes are
// combined.

import { unreachable } from '../base/assert.ts';
import { formatDuration, formatMoment } from '../base/time.ts';
import type { Decision, JournalRecord, RunEnd } from '../kernel/decision.ts';
import { DELIVERY_TEXTS, isDelivered } from './delivery.ts';
import { shorten } from './sanitize.ts';

export interface TimelineLine {
  /** Milliseconds since 1970. */
  readonly at: number;
  /** Null if the line is about the run. */
  readonly step: string | null;
  readonly text: string;
  readonly tone: 'plain' | 'good' | 'bad' | 'warning' | 'quiet';
}

/** Reads records in order from the first, since the duration of an attempt depends on the record that started it. */
export class Timeline {
  /** Start of the run; null before its first record. */
  startedAt: number | null = null;
  readonly #startOf = new Map<string, number>();
  readonly #iterating = new Set<string>();
  readonly #running = new Set<string>();
  /** The end that was decided last. */
  #end: RunEnd | null = null;

  lines(record: JournalRecord): readonly TimelineLine[] {
    const lines: TimelineLine[] = [];
    const say = (step: string | null, text: string, tone: TimelineLine['tone'] = 'plain'): void => {
      lines.push({ at: record.at, step, text, tone });
    };
    const grown = new Growth();
    for (const decision of record.decisions) {
      if (decision.kind === 'frame-opened' || decision.kind === 'steps-added') {
        grown.add(decision);
        continue;
      }
      grown.tell(say, this.#iterating);
      this.#tell(decision, record, say);
    }
    grown.tell(say, this.#iterating);
    return lines;
  }

  #tell(decision: TellableDecision, { seq, at }: JournalRecord, say: Say): void {
    switch (decision.kind) {
      case 'run-started':
        this.startedAt = at;
        return say(null, 'run started');
      case 'step-started':
        this.#startOf.set(decision.step, at);
        this.#running.add(decision.step);
        if (decision.items !== null) this.#iterating.add(decision.step);
        // The gate request has a line of its own.
        return decision.effect?.kind === 'gate' ? undefined : say(decision.step, started(decision));
      case 'step-answered':
        return decision.route === null ? undefined : say(decision.step, `outcome ${decision.route}`, 'quiet');
      case 'step-failed-once': {
        this.#running.delete(decision.step);
        const wait = decision.retryAt - at;
        const retry = wait > 0 ? `retry in ${formatDuration(wait)}` : 'retry at once';
        return say(decision.step, `failed: ${decision.failure.message} — ${retry}`, 'warning');
      }
      case 'step-lost':
        this.#running.delete(decision.step);
        if (decision.why === 'pause') return say(decision.step, 'no longer waits — runs again on resume', 'warning');
        return say(decision.step, 'lost with an earlier engine — runs again', 'warning');
      case 'steps-stopping': {
        const verb = decision.force ? 'is killed' : 'is being stopped';
        const [only] = decision.steps;
        if (decision.steps.length === 1 && only !== undefined)
          return say(only, decision.why === 'timeout' ? `timed out, ${verb}` : verb, 'warning');
        return say(null, `${decision.force ? 'killing' : 'stopping'} ${listed(decision.steps)}`, 'warning');
      }
      case 'step-done':
        this.#running.delete(decision.step);
        return say(decision.step, `done${this.#lasted(decision.step, at)}`, 'good');
      case 'step-failed': {
        const { step, failure, handling } = decision;
        this.#running.delete(step);
        const text = `failed${this.#lasted(step, at)}: ${failure.message}`;
        switch (handling) {
          case 'fails':
            return say(step, text, 'bad');
          case 'continues':
            return say(step, `${text} — the run continues`, 'warning');
          case 'routed':
            return say(step, `${text} — a route follows`, 'warning');
          case 'recovers':
            return say(step, `${text} — recovery follows`, 'warning');
        }
        return unreachable(handling);
      }
      case 'step-recovered':
        return say(decision.step, 'recovered', 'good');
      case 'recovery-failed':
        return say(decision.step, 'recovery failed', 'bad');
      case 'steps-skipped': {
        const stopped = new Set(decision.steps.filter((step) => this.#running.delete(step)));
        if (stopped.size > 0) sayOfAll(say, [...stopped], 'stopped', 'warning');
        const never = decision.steps.filter((step) => !stopped.has(step));
        if (never.length > 0) sayOfAll(say, never, 'skipped', 'quiet');
        return;
      }
      case 'step-completing':
        return say(decision.step, `reported${decision.notes === null ? '' : `: ${decision.notes}`}`);
      case 'step-progressed':
        return this.#progressed(say, decision);
      case 'step-printed':
        return say(decision.step, `says: ${decision.text}`);
      case 'items-read':
        return say(decision.step, `read ${counted(decision.items.length, 'item')}`);
      case 'gate-asked':
        return say(decision.step, `waits for a decision on gate ${decision.gate}`, 'warning');
      case 'gate-expired':
        return say(decision.step, `gate ${decision.gate} was not decided in time`, 'warning');
      case 'event-emitted': {
        const { type, agent, data } = decision.event;
        const from = agent === null ? '' : ` from ${agent}`;
        const said = Object.keys(data).length === 0 ? '' : ` ${JSON.stringify(data)}`;
        return say(null, `event ${type}${from}${said}`);
      }
      case 'agent-opened': {
        const { name, adapter, terminal } = decision.agent;
        return say(null, `agent ${name} ready (${adapter}${terminal === null ? '' : `, ${terminal}`})`, 'good');
      }
      case 'agent-reviving':
        return say(null, `agent ${decision.agent} is restarted`, 'warning');
      case 'agents-hastened':
        return say(null, `forcing ${counted(decision.agents.length, 'agent')}`, 'warning');
      case 'agents-closing':
        return say(null, `${decision.force ? 'killing' : 'ending'} ${counted(decision.agents.length, 'agent')}`);
      case 'agent-closed': {
        const { agent, how, message } = decision;
        if (how === 'killed' || how === 'ended') return say(null, `agent ${agent} stopped`);
        return say(null, message ?? `agent ${agent} is ${how}`, 'warning');
      }
      case 'gate-decided': {
        const { approved, by, notes, answer } = decision.verdict;
        const said = answer ?? notes ?? '';
        const how = answer !== null ? 'answered' : approved ? 'approved' : 'rejected';
        const text = `gate ${decision.gate} ${how} by ${by}${said === '' ? '' : `: ${said}`}`;
        return say(null, text, approved ? 'good' : 'warning');
      }
      case 'run-ending':
        this.#end = decision.end;
        return decision.end === 'done' ? undefined : say(null, ending(decision, at), 'warning');
      case 'cleanup-started':
        return say(null, 'cleanup started');
      case 'cleanup-stopping':
        return say(null, 'cleanup is being stopped', 'warning');
      case 'cleanup-finished':
        return say(null, 'cleanup finished');
      case 'run-resumed':
        if (decision.reopened.length > 0 || decision.withdrawn) return say(null, resumed(decision, this.#end));
        // A detached run is created by one process and continued by another: nothing was interrupted.
        return say(null, seq === 2 ? 'an engine has started the run' : 'run resumed');
      case 'warned':
        return say(null, `warning: ${decision.message}`, 'warning');
      case 'run-ended': {
        const lasted = this.startedAt === null ? '' : ` after ${formatDuration(at - this.startedAt)}`;
        const reason = decision.reason === null ? '' : `: ${decision.reason}`;
        return say(null, `run ${decision.end}${lasted}${reason}`, END_TONES[decision.end]);
      }
      case 'step-retried':
      case 'agent-session':
      case 'step-grown':
      case 'event-received':
      case 'iterations-named':
      case 'wait-released':
      case 'usage-counted':
      case 'frame-failing':
      case 'value-returned':
      case 'frames-dropped':
      case 'frame-closed':
        return;
      default:
        return unreachable(decision);
    }
  }

  #progressed(say: Say, { step, progress }: Extract<Decision, { kind: 'step-progressed' }>): void {
    const { delivery, dialog } = progress;
    if (delivery !== undefined && delivery !== 'sending')
      say(step, DELIVERY_TEXTS[delivery], isDelivered(delivery) ? 'plain' : 'warning');
    if (dialog === null) say(step, 'its agent no longer asks');
    else if (dialog !== undefined) say(step, `its agent asks: ${dialog.name}`, 'warning');
  }

  #lasted(step: string, at: number): string {
    const from = this.#startOf.get(step);
    return from === undefined ? '' : ` ${formatDuration(at - from)}`;
  }
}

/** Printed by `meow run --json` and `meow trace --json`: one object per decision. */
export function decisionJson(record: JournalRecord, run: string): readonly DecisionObject[] {
  const at = formatMoment(record.at);
  return record.decisions.map((decision) => ({ run, seq: record.seq, at, ...decision }));
}

export type DecisionObject = Decision & { readonly run: string; readonly seq: number; readonly at: string };

type Say = (step: string | null, text: string, tone?: TimelineLine['tone']) => void;
type Opened = Extract<Decision, { kind: 'frame-opened' | 'steps-added' }>;
type TellableDecision = Exclude<Decision, Opened>;

const LISTED_MAX = 3;
const END_TONES = { done: 'good', failed: 'bad', stopped: 'warning', paused: 'warning' } as const;

/** Combines frames opened one after another into one line per parent step. */
class Growth {
  #owner: string | null = null;
  #join: string | null = null;
  #blocks = 0;
  #steps = 0;
  readonly #told: {
    readonly owner: string;
    readonly join: string | null;
    readonly blocks: number;
    readonly steps: number;
  }[] = [];

  add(decision: Opened): void {
    if (decision.kind === 'steps-added') {
      this.#steps += decision.steps.length;
      return;
    }
    // A frame that replaces another continues the lane: its steps have lines of their own.
    const owner = decision.frame.replaces === null ? decision.frame.owner : null;
    if (owner !== this.#owner || decision.frame.join !== this.#join) this.#flush();
    this.#owner = owner;
    this.#join = decision.frame.join;
    this.#blocks += 1;
  }

  tell(say: Say, iterating: ReadonlySet<string>): void {
    this.#flush();
    for (const { owner, join, blocks, steps } of this.#told.splice(0)) {
      // The parts of a step that a block performs have lines of their own.
      if (join === 'answer') continue;
      if (join === 'recover') say(owner, `recovers by ${counted(steps, 'step')}`);
      else if (iterating.has(owner)) say(owner, `began ${counted(blocks, 'iteration')} (${counted(steps, 'step')})`);
      else say(owner, `expanded into ${counted(steps, 'step')}`);
    }
  }

  #flush(): void {
    if (this.#owner !== null) {
      this.#told.push({ owner: this.#owner, join: this.#join, blocks: this.#blocks, steps: this.#steps });
    }
    this.#owner = null;
    this.#join = null;
    this.#blocks = 0;
    this.#steps = 0;
  }
}

function started({ attempt, agent, items }: Extract<Decision, { kind: 'step-started' }>): string {
  const remarks: string[] = [];
  if (attempt > 1) remarks.push(`attempt ${attempt}`);
  if (agent !== null) remarks.push(`agent ${agent}`);
  if (items !== null) remarks.push(counted(items.length, 'item'));
  const remark = remarks.length === 0 ? '' : ` (${remarks.join(', ')})`;
  return `started${remark}`;
}

function resumed({ reopened, withdrawn }: Extract<Decision, { kind: 'run-resumed' }>, end: RunEnd | null): string {
  const again = reopened.length === 0 ? '' : `; retrying ${listed(reopened)}`;
  return `run resumed${withdrawn ? `; the ${end === 'paused' ? 'pause' : 'stop'} is withdrawn` : ''}${again}`;
}

function ending({ end, reason, drainUntil }: Extract<Decision, { kind: 'run-ending' }>, at: number): string {
  const verb = end === 'failed' ? 'is failing' : end === 'stopped' ? 'is stopping' : 'is pausing';
  const because = reason === null ? '' : `: ${reason}`;
  const drain =
    drainUntil === null || drainUntil <= at
      ? ''
      : ` — running steps may finish within ${formatDuration(drainUntil - at)}`;
  return `run ${verb}${because}${drain}`;
}

function sayOfAll(say: Say, steps: readonly string[], verb: string, tone: TimelineLine['tone']): void {
  const [only] = steps;
  if (steps.length === 1 && only !== undefined) say(only, verb, tone);
  else say(null, `${verb} ${listed(steps)}`, tone);
}

function listed(steps: readonly string[]): string {
  const names = steps.slice(0, LISTED_MAX).map(shorten).join(', ');
  return `${counted(steps.length, 'step')}: ${names}${steps.length > LISTED_MAX ? ' …' : ''}`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
