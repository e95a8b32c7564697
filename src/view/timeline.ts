// A run's journal as lines for people and as objects for scripts. Data only; `timeline-lines.ts` prints it. Each record
// gives the lines for what changed in a step or in the run. Internal records give none, and similar changes are
// combined.

import { unreachable } from '../base/errors.ts';
import { shorten } from '../base/sanitize.ts';
import { formatDuration, formatMoment } from '../base/time.ts';
import type { Decision, FrameJoin, FrameSpec, JournalRecord, RunEnd } from '../kernel/decision.ts';
import { Durations } from './durations.ts';
import { verdictText } from './status.ts';
import { DELIVERY_TEXTS, isDelivered } from './step.ts';

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
  readonly #durations = new Durations();
  /** The latest step of each lane. */
  readonly #stepIn = new Map<string, string>();
  readonly #laneOf = new Map<string, string>();
  /** The frame that was opened last; its steps follow. */
  #opened: FrameSpec | null = null;
  readonly #iterating = new Set<string>();
  readonly #running = new Set<string>();
  /** The end that was decided last. */
  #end: RunEnd | null = null;

  lines(record: JournalRecord): readonly TimelineLine[] {
    const lines: TimelineLine[] = [];
    const say = (step: string | null, text: string, tone: TimelineLine['tone'] = 'plain'): void => {
      lines.push({ at: record.at, step, text, tone });
    };
    const growths: Growth[] = [];
    const moves: Move[] = [];
    const sayMoves = (): void => moves.splice(0).forEach(({ from, text }) => say(from, text));
    for (const decision of record.decisions) {
      this.#durations.note(decision, record.at);
      // Transitions are told after the end of the step that took them.
      moves.push(...this.#movesIn(decision));
      if (decision.kind === 'frame-opened' || decision.kind === 'steps-added') addGrowth(growths, decision);
      else {
        if (decision.kind === 'step-started' || decision.kind === 'run-ending') sayMoves();
        this.#describeGrowth(growths.splice(0), say);
        this.#describe(decision, record, say);
      }
    }
    this.#describeGrowth(growths, say);
    sayMoves();
    return lines;
  }

  #describe(decision: Exclude<Decision, Opened>, { seq, at }: JournalRecord, say: Say): void {
    switch (decision.kind) {
      case 'run-started':
        return say(null, 'run started');
      case 'step-started':
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
      case 'step-parked':
        this.#running.delete(decision.step);
        return say(decision.step, `parked: ${decision.failure.message} — continues on resume`, 'warning');
      case 'step-lost':
        this.#running.delete(decision.step);
        if (decision.why === 'pause') return say(decision.step, 'no longer waits — runs again on resume', 'warning');
        return say(decision.step, 'lost with an earlier engine — runs again', 'warning');
      case 'steps-stopping': {
        const { steps, why, force } = decision;
        const [only] = steps;
        if (only === undefined || steps.length > 1)
          return say(null, `${force ? 'killing' : 'stopping'} ${listed(steps)}`, 'warning');
        return say(
          only,
          `${why === 'timeout' ? 'timed out, ' : ''}${force ? 'is killed' : 'is being stopped'}`,
          'warning',
        );
      }
      case 'step-done':
        this.#running.delete(decision.step);
        return say(decision.step, `done${this.#lasted(decision.step, at)}`, 'good');
      case 'step-failed': {
        const { step, failure, handling } = decision;
        this.#running.delete(step);
        const text = `failed${this.#lasted(step, at)}: ${failure.message}${HANDLING_TEXTS[handling]}`;
        return say(step, text, handling === 'fails' ? 'bad' : 'warning');
      }
      case 'step-recovered':
        return say(decision.step, 'recovered', 'good');
      case 'recovery-failed':
        return say(decision.step, 'recovery failed', 'bad');
      case 'steps-skipped': {
        const stopped = new Set(decision.steps.filter((step) => this.#running.delete(step)));
        const neverStarted = decision.steps.filter((step) => !stopped.has(step));
        sayOfAll(say, [...stopped], 'stopped', 'warning');
        return sayOfAll(say, neverStarted, 'skipped', 'quiet');
      }
      case 'step-completing':
        return say(decision.step, `reported${decision.notes === null ? '' : `: ${decision.notes}`}`);
      case 'step-progressed':
        return this.#progressed(say, decision);
      case 'step-printed':
        return say(decision.step, `says: ${decision.text}`);
      case 'round-delayed':
        return say(decision.step, `waits ${formatDuration(decision.until - at)} before round ${decision.round}`);
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
        const { gate, verdict } = decision;
        return say(null, `gate ${gate} ${verdictText(verdict)}`, verdict.approved ? 'good' : 'warning');
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
        const reason = decision.reason === null ? '' : `: ${decision.reason}`;
        const lasted = formatDuration(this.#durations.run(at) ?? 0);
        return say(null, `run ${decision.end} after ${lasted}${reason}`, END_TONES[decision.end]);
      }
      case 'report-refused':
        return say(decision.step, `report refused: ${decision.reason.replaceAll(/\s+/g, ' ')}`, 'warning');
      case 'effect-ended':
      case 'step-retried':
      case 'round-due':
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

  /** How lanes go on. */
  #movesIn(decision: Decision): readonly Move[] {
    if (decision.kind === 'frame-opened') {
      this.#opened = decision.frame;
      this.#laneOf.set(decision.frame.id, decision.frame.lane);
    }
    if (decision.kind === 'value-returned') {
      const from = this.#stepIn.get(this.#laneOf.get(decision.frame) ?? '');
      return from === undefined ? [] : [{ from, text: `returns ${shorten(JSON.stringify(decision.value))}` }];
    }
    if (decision.kind !== 'steps-added') return [];
    const frame = this.#opened;
    const [step] = decision.steps;
    if (frame === null || step === undefined || frame.owner !== null) return [];
    const { lane, forkedFrom, replaces, caller } = frame;
    const from = this.#stepIn.get(replaces === null ? (forkedFrom ?? lane) : lane);
    this.#stepIn.set(lane, step);
    if (from === undefined) return [];
    if (replaces !== null) return [{ from, text: `goes to ${step}` }];
    if (forkedFrom !== null) return [{ from, text: `forks ${step}` }];
    return caller === null ? [] : [{ from, text: `calls ${step}` }];
  }

  #progressed(say: Say, { step, progress }: Extract<Decision, { kind: 'step-progressed' }>): void {
    const { delivery, dialog } = progress;
    if (delivery !== undefined && delivery !== 'sending')
      say(step, DELIVERY_TEXTS[delivery], isDelivered(delivery) ? 'plain' : 'warning');
    if (dialog === null) say(step, 'its agent no longer asks');
    else if (dialog !== undefined) say(step, `its agent asks: ${dialog.name}`, 'warning');
  }

  #describeGrowth(growths: readonly Growth[], say: Say): void {
    for (const { owner, join, round, blocks, steps } of growths) {
      // The parts of a step that a block performs, and the checks of a loop, have lines of their own.
      if (owner === null || join === 'answer' || join === 'check') continue;
      const what = counted(steps, 'step');
      if (join === 'recover') say(owner, `recovers by ${what}`);
      else if (round !== undefined) say(owner, `round ${round} (${what})`);
      else if (this.#iterating.has(owner)) say(owner, `began ${counted(blocks, 'iteration')} (${what})`);
      else say(owner, `expanded into ${what}`);
    }
  }

  #lasted(step: string, at: number): string {
    const ms = this.#durations.step(step, at);
    return ms === null ? '' : ` ${formatDuration(ms)}`;
  }
}

/** Printed by `meow run --json` and `meow trace --json`: one object per decision. */
export function decisionJson(record: JournalRecord, run: string): readonly DecisionObject[] {
  const at = formatMoment(record.at);
  return record.decisions.map((decision) => ({ run, seq: record.seq, at, ...decision }));
}

type DecisionObject = Decision & { readonly run: string; readonly seq: number; readonly at: string };
type Say = (step: string | null, text: string, tone?: TimelineLine['tone']) => void;
type Opened = Extract<Decision, { kind: 'frame-opened' | 'steps-added' }>;

const LISTED_MAX = 3;
const END_TONES = { done: 'good', failed: 'bad', stopped: 'warning', paused: 'warning' } as const;

const HANDLING_TEXTS = {
  fails: '',
  continues: ' — the run continues',
  routed: ' — a route follows',
  recovers: ' — recovery follows',
} as const;

/** A transition. */
interface Move {
  readonly from: string;
  readonly text: string;
}

/** Frames opened one after another below the same step. */
interface Growth {
  readonly owner: string | null;
  readonly join: FrameJoin;
  /** Of a loop. */
  readonly round: number | undefined;
  blocks: number;
  steps: number;
}

function addGrowth(growths: Growth[], decision: Opened): void {
  const last = growths.at(-1);
  if (decision.kind === 'steps-added') {
    if (last !== undefined) last.steps += decision.steps.length;
    return;
  }
  const { replaces, join, round } = decision.frame;
  // A frame that replaces another continues the lane: its steps have lines of their own.
  const owner = replaces === null ? decision.frame.owner : null;
  if (last?.owner === owner && last.join === join) last.blocks += 1;
  else growths.push({ owner, join, round, blocks: 1, steps: 0 });
}

function started({ attempt, agent, items }: Extract<Decision, { kind: 'step-started' }>): string {
  const remarks: string[] = [];
  if (attempt > 1) remarks.push(`attempt ${attempt}`);
  if (agent !== null) remarks.push(`agent ${agent}`);
  if (items !== null) remarks.push(counted(items.length, 'item'));
  return remarks.length === 0 ? 'started' : `started (${remarks.join(', ')})`;
}

function resumed({ reopened, withdrawn }: Extract<Decision, { kind: 'run-resumed' }>, end: RunEnd | null): string {
  const again = reopened.length === 0 ? '' : `; retrying ${listed(reopened)}`;
  return `run resumed${withdrawn ? `; the ${end === 'paused' ? 'pause' : 'stop'} is withdrawn` : ''}${again}`;
}

function ending({ end, reason, drainUntil }: Extract<Decision, { kind: 'run-ending' }>, at: number): string {
  const verb = end === 'failed' ? 'is failing' : end === 'stopped' ? 'is stopping' : 'is pausing';
  const because = reason === null ? '' : `: ${reason}`;
  if (drainUntil === null || drainUntil <= at) return `run ${verb}${because}`;
  return `run ${verb}${because} — running steps may finish within ${formatDuration(drainUntil - at)}`;
}

function sayOfAll(say: Say, steps: readonly string[], verb: string, tone: TimelineLine['tone']): void {
  const [only, ...others] = steps;
  if (only === undefined) return;
  if (others.length === 0) say(only, verb, tone);
  else say(null, `${verb} ${listed(steps)}`, tone);
}

function listed(steps: readonly string[]): string {
  const names = steps.slice(0, LISTED_MAX).map(shorten).join(', ');
  return `${counted(steps.length, 'step')}: ${names}${steps.length > LISTED_MAX ? ' …' : ''}`;
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
