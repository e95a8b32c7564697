// A run's journal as lines for people and as objects for scripts. Each record gives the lines for what changed in a step
// or in the run. Internal records give none, and similar changes are combined.

import { sanitize, shorten } from '../base/sanitize.ts';
import { formatDuration, formatMoment } from '../base/time.ts';
import type { Decision, FrameJoin, FrameSpec, JournalRecord, RunEnd } from '../kernel/decision.ts';
import { counted, padTo, type Palette, widthOf } from './row.ts';
import { verdictText } from './status.ts';
import { DELIVERY_TEXTS, isDelivered } from './step.ts';
import { Durations } from './usage.ts';

export interface TimelineLine {
  readonly at: number;
  /** Null if the line is about the run. */
  readonly step: string | null;
  readonly text: string;
  readonly tone: 'plain' | 'good' | 'bad' | 'warning' | 'quiet';
}

/** What of a record is told: its input is not. */
type Told = Pick<JournalRecord, 'seq' | 'at' | 'decisions'>;

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

  lines(record: Told): readonly TimelineLine[] {
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

  #describe(decision: Exclude<Decision, Opened>, { seq, at }: Told, say: Say): void {
    switch (decision.kind) {
      case 'step-started':
        this.#running.add(decision.step);
        if (decision.items !== null) this.#iterating.add(decision.step);
        // The gate request has a line of its own.
        return decision.effect?.kind === 'gate' ? undefined : say(decision.step, started(decision));
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
        if (decision.why === 'machine') return say(decision.step, 'lost on another machine — runs again', 'warning');
        return say(decision.step, 'lost with an earlier engine — runs again', 'warning');
      case 'step-done':
        this.#running.delete(decision.step);
        return say(decision.step, `done${this.#lasted(decision.step, at)}`, 'good');
      case 'step-failed': {
        const { step, failure, handling } = decision;
        this.#running.delete(step);
        const text = `failed${this.#lasted(step, at)}: ${failure.message}${HANDLING_TEXTS[handling]}`;
        return say(step, text, handling === 'fails' ? 'bad' : 'warning');
      }
      case 'steps-skipped': {
        const stopped = new Set(decision.steps.filter((step) => this.#running.delete(step)));
        const neverStarted = decision.steps.filter((step) => !stopped.has(step));
        sayOfAll(say, [...stopped], 'stopped', 'warning');
        return sayOfAll(say, neverStarted, 'skipped', 'quiet');
      }
      case 'step-progressed':
        return this.#progressed(say, decision);
      case 'run-ending':
        this.#end = decision.end;
        return decision.end === 'done' ? undefined : say(null, ending(decision, at), 'warning');
      case 'run-resumed':
        if (decision.take !== undefined && decision.machine !== undefined && decision.take.from !== null) {
          const { machine, take } = decision;
          if (take.from !== machine.id) say(null, `moved from ${take.from} to ${machine.id}`);
        }
        if (decision.reopened.length > 0 || decision.withdrawn) return say(null, resumed(decision, this.#end));
        // A detached run is created by one process and continued by another: nothing was interrupted.
        return say(null, seq === 2 ? 'an engine has started the run' : 'run resumed');
      case 'run-ended': {
        const reason = decision.reason === null ? '' : `: ${decision.reason}`;
        const lasted = formatDuration(this.#durations.run(at) ?? 0);
        return say(null, `run ${decision.end} after ${lasted}${reason}`, END_TONES[decision.end]);
      }
      default: {
        const line = (LINES[decision.kind] as (decision: Decision, at: number) => Line | null)(decision, at);
        if (line !== null) say(...line);
      }
    }
  }

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

/** `elapsed`: since the start of the run (`+1.2s`). `moment`: `2026-01-08T21:00:00.000Z`. */
type TimelineClock = { readonly kind: 'elapsed'; readonly startedAt: number } | { readonly kind: 'moment' };

/** Pads ids to the given width; a longer id pushes its text to the right. */
export function renderTimelineLine(
  line: TimelineLine,
  clock: TimelineClock,
  idWidth: number,
  palette: Palette,
): string {
  const when =
    clock.kind === 'moment'
      ? formatMoment(line.at)
      : `+${formatDuration(Math.max(0, line.at - clock.startedAt))}`.padEnd(ELAPSED_WIDTH);
  const style = STYLES[line.tone];
  const shown = sanitize(line.text);
  const text = style === null ? shown : palette[style](shown);
  if (line.step === null) return `${palette.dim(when)} ${text}`;
  const id = shorten(line.step);
  return `${palette.dim(when)} ${palette.bold(id)}${padTo('', idWidth - widthOf(id))} ${text}`;
}

const ELAPSED_WIDTH = 8;
const STYLES = { plain: null, good: 'green', bad: 'red', warning: 'yellow', quiet: 'dim' } as const;

/** Printed by `meow run --json` and `meow trace --json`: one object per decision. */
export function decisionJson(record: JournalRecord, run: string): readonly DecisionObject[] {
  const at = formatMoment(record.at);
  return record.decisions.map((decision) => ({ run, seq: record.seq, at, ...decision }));
}

type DecisionObject = Decision & { readonly run: string; readonly seq: number; readonly at: string };
type Say = (step: string | null, text: string, tone?: TimelineLine['tone']) => void;
type Opened = Extract<Decision, { kind: 'frame-opened' | 'steps-added' }>;

type Line = Parameters<Say>;
type LineOf<K extends Decision['kind']> = (decision: Extract<Decision, { kind: K }>, at: number) => Line | null;

const none = (): null => null;

/** The line of each decision that depends on no other. */
const LINES = {
  'run-started': ({ fork }) => [null, fork === undefined ? 'run started' : `run started as a fork of ${fork.from}`],
  'program-grown': ({ part }) => [null, `loaded the workflow ${part.path}`],
  'step-answered': ({ step, route }) => (route === null ? null : [step, `outcome ${route}`, 'quiet']),
  'step-recovered': ({ step }) => [step, 'recovered', 'good'],
  'recovery-failed': ({ step }) => [step, 'recovery failed', 'bad'],
  'step-completing': ({ step, notes }) => [step, `reported${notes === null ? '' : `: ${notes}`}`],
  'step-printed': ({ step, text }) => [step, `says: ${text}`],
  'round-delayed': ({ step, until, round }, at) => [step, `waits ${formatDuration(until - at)} before round ${round}`],
  'items-read': ({ step, items }) => [step, `read ${counted(items.length, 'item')}`],
  'gate-asked': ({ step, gate }) => [step, `waits for a decision on gate ${gate}`, 'warning'],
  'gate-expired': ({ step, gate }) => [step, `gate ${gate} was not decided in time`, 'warning'],
  'gate-decided': ({ gate, verdict }) => [
    null,
    `gate ${gate} ${verdictText(verdict)}`,
    verdict.approved ? 'good' : 'warning',
  ],
  'report-refused': ({ step, reason }) => [step, `report refused: ${refusalText(reason)}`, 'warning'],
  'steps-stopping': ({ steps, why, force }) => {
    const [only] = steps;
    if (only === undefined || steps.length > 1)
      return [null, `${force ? 'killing' : 'stopping'} ${listed(steps)}`, 'warning'];
    return [only, `${why === 'timeout' ? 'timed out, ' : ''}${force ? 'is killed' : 'is being stopped'}`, 'warning'];
  },
  'event-emitted': ({ event: { type, agent, data } }) => {
    const from = agent === null ? '' : ` from ${agent}`;
    return [null, `event ${type}${from}${Object.keys(data).length === 0 ? '' : ` ${JSON.stringify(data)}`}`];
  },
  'agent-kept': none,
  'agent-opened': ({ agent: { name, adapter, terminal } }) => [
    null,
    `agent ${name} ready (${adapter}${terminal === null ? '' : `, ${terminal}`})`,
    'good',
  ],
  'agent-reviving': ({ agent }) => [null, `agent ${agent} is restarted`, 'warning'],
  'agents-hastened': ({ agents }) => [null, `forcing ${counted(agents.length, 'agent')}`, 'warning'],
  'agents-closing': ({ agents, force }) => [null, `${force ? 'killing' : 'ending'} ${counted(agents.length, 'agent')}`],
  'agent-closed': ({ agent, how, message }) =>
    how === 'killed' || how === 'ended'
      ? [null, `agent ${agent} stopped`]
      : [null, message ?? `agent ${agent} is ${how}`, 'warning'],
  'cleanup-started': () => [null, 'cleanup started'],
  'cleanup-stopping': () => [null, 'cleanup is being stopped', 'warning'],
  'cleanup-finished': () => [null, 'cleanup finished'],
  warned: ({ message }) => [null, `warning: ${message}`, 'warning'],
  'engine-replaced': none,
  'effect-ended': none,
  'step-retried': none,
  'round-due': none,
  'agent-session': none,
  'step-grown': none,
  'event-received': none,
  'iterations-named': none,
  'wait-released': none,
  'usage-reserved': none,
  'usage-counted': none,
  'frame-failing': none,
  'value-returned': none,
  'frames-dropped': none,
  'frame-closed': none,
} satisfies { readonly [K in Decision['kind']]?: LineOf<K> };

const LISTED_MAX = 3;
const END_TONES = { done: 'good', failed: 'bad', stopped: 'warning', paused: 'warning' } as const;

const HANDLING_TEXTS = {
  fails: '',
  continues: ' — the run continues',
  routed: ' — a route follows',
  recovers: ' — recovery follows',
} as const;

interface Move {
  readonly from: string;
  readonly text: string;
}

/** Frames opened one after another below the same step. */
interface Growth {
  readonly owner: string | null;
  readonly join: FrameJoin;
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

function started({ attempt, agent, items, keptFrom }: Extract<Decision, { kind: 'step-started' }>): string {
  if (keptFrom !== undefined) return `kept from ${keptFrom}`;
  const remarks: string[] = [];
  if (attempt > 1) remarks.push(`attempt ${attempt}`);
  if (agent !== null) remarks.push(`agent ${agent}`);
  if (items !== null) remarks.push(counted(items.length, 'item'));
  return remarks.length === 0 ? 'started' : `started (${remarks.join(', ')})`;
}

/** The reasons of a refusal that the agent got as a list; otherwise its first line. */
function refusalText(reason: string): string {
  const lines = reason.split('\n').map((line) => line.trim());
  const points = lines.flatMap((line) => (line.startsWith('✗ ') ? [line.slice(2)] : []));
  return points.length > 0 ? points.join('; ') : (lines[0] ?? '');
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
