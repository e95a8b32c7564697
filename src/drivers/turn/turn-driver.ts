// The driver of headless turns: each effect is one run of an agent's program, in the session that its step is in
// (turn.ts, U1–U4). What the world does is a failure in the answer; an exception is a bug of ours, and ends the engine.

import { assert } from '../../base/assert.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../base/errno.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import type { Answer, Driver, Note, StopHow } from '../../engine/ports.ts';
import type { Adapter } from '../../ir/adapter.ts';
import type { Effect, Outcome, TurnSpec } from '../../ir/effect.ts';
import { failure } from '../../ir/failure.ts';
import type { FailureKind } from '../../ir/failure.ts';
import type { FilledText } from '../../ir/text.ts';
import { adapterEnvironment, holeValues, layOut } from '../adapter-start.ts';
import { AskedEffects } from '../asked.ts';
import type { Asked } from '../asked.ts';
import { environmentFor, inRun, markerOf, wholeEnvironment } from '../environment.ts';
import type { RunSurroundings } from '../environment.ts';
import type { AdapterNamed } from '../hosts.ts';
import { readerNamed } from '../readers/named.ts';
import { makeStepFolder, stepFolder } from '../step-folder.ts';
import { wholeText } from '../whole-text.ts';
import { workFolder } from '../work-folder.ts';
import { turnOutcome } from './outcome.ts';
import { SessionLedger } from './session-ledger.ts';
import { Starter } from './starter.ts';
import { stateOf, Turn } from './turn.ts';
import type { TurnPlace, TurnStart } from './turn.ts';

export interface TurnDriverOptions extends RunSurroundings {
  readonly adapters: AdapterNamed;
  /** A usage limit is waited for; else it is a failure like any other. */
  readonly parks?: boolean;
  /** Between asking a program to end and ending it; 10 seconds, save in tests. */
  readonly graceMs?: number;
}

export function turnDriver(options: TurnDriverOptions): Driver {
  return new TurnDriver(options);
}

const GRACE_MS = 10_000;

class TurnDriver implements Driver {
  readonly #options: TurnDriverOptions;
  readonly #open = new AskedEffects();
  readonly #ledger: SessionLedger;
  readonly #starter: Starter;
  /** What the engine is about to ask for: of many the first. */
  #prepared: { readonly effect: string; readonly start: Result<TurnStart, string> } | null = null;

  constructor(options: TurnDriverOptions) {
    this.#options = options;
    this.#starter = new Starter(options.environment);
    this.#ledger = new SessionLedger(options.runFolder);
  }

  start(effect: Effect, answer: Answer, note: Note = unheard): void {
    this.#ask('start', effect, answer, note);
  }

  find(effect: Effect, answer: Answer, note: Note = unheard): void {
    this.#ask('find', effect, answer, note);
  }

  stop(effectId: string, how: StopHow): void {
    this.#open.get(effectId)?.stop(how);
  }

  /** All that does not depend on the session, which is chosen when the turn begins. */
  prepare(effect: Effect): void {
    if (this.#prepared !== null || effect.spec.kind !== 'turn') return;
    const adapter = this.#adapterOf(effect.spec);
    if (!adapter.ok) return;
    const { path } = stepFolder(this.#options.runFolder, effect.step, effect.attempt);
    try {
      makeStepFolder(path);
    } catch (error) {
      // Whoever asks for it is told.
      if (!isErrno(error, ...ABSENT, ...REFUSED, ...EXHAUSTED)) throw error;
      return;
    }
    this.#prepared = { effect: effect.id, start: this.#startOf(effect, effect.spec, adapter.value, path) };
  }

  #ask(how: 'start' | 'find', effect: Effect, answer: Answer, note: Note): void {
    const { spec } = effect;
    assert(spec.kind === 'turn', `no turn: ${effect.id} is a ${spec.kind}`);
    this.#open.ask(effect.id, answer, (asked) => this.#perform(how, effect, spec, asked, note));
  }

  async #perform(
    how: 'start' | 'find',
    effect: Effect,
    spec: TurnSpec<FilledText>,
    asked: Asked,
    note: Note,
  ): Promise<Outcome> {
    const { runFolder } = this.#options;
    const prepared = this.#prepared?.effect === effect.id ? this.#prepared.start : null;
    if (prepared !== null) this.#prepared = null;
    const adapter = this.#adapterOf(spec);
    if (!adapter.ok) return notStarted(adapter.error);
    const folder = stepFolder(runFolder, effect.step, effect.attempt);
    const { idleMs } = spec;
    const place: TurnPlace = {
      folder,
      marker: markerOf(this.#options, effect.id),
      adapter: adapter.value,
      ledger: this.#ledger,
      idleMs,
      graceMs: this.#options.graceMs ?? GRACE_MS,
      background: false,
      start: (request, events) => this.#starter.start(request, events),
    };
    const turn = new Turn(place);
    if (how === 'find' && stateOf(place) !== 'never') turn.adopt();
    else if (asked.isStopped) return failed('stopped', 'the agent was stopped before it was started');
    else {
      const start = prepared ?? this.#startOf(effect, spec, adapter.value, folder.path);
      if (!start.ok) return notStarted(start.error);
      turn.begin(start.value);
    }
    turn.watchSession((session) => void note({ session }));
    void asked.stopped.then(({ force }) => turn.stop('stopped', force ? 0 : place.graceMs));
    void asked.forced.then(() => turn.stop('stopped', 0));
    const outcome = await turnOutcome(await turn.ended, { runFolder, folder, adapter: adapter.value, idleMs });
    return this.#options.parks === false ? unparked(outcome) : outcome;
  }

  /** An error is a sentence. */
  #adapterOf(spec: TurnSpec<FilledText>): Result<Adapter, string> {
    const name = wholeText(spec.adapter, this.#options.runFolder);
    return name.ok ? headlessAdapter(name.value, this.#options.adapters) : name;
  }

  /** An error is a sentence. */
  #startOf(effect: Effect, spec: TurnSpec<FilledText>, adapter: Adapter, folder: string): Result<TurnStart, string> {
    const run = this.#options;
    const texts: string[] = [];
    for (const text of [spec.prompt, spec.cwd ?? '', spec.model ?? '', spec.effort ?? '']) {
      const whole = wholeText(text, run.runFolder);
      if (!whole.ok) return whole;
      texts.push(whole.value);
    }
    const [prompt = '', cwd = '', model = '', effort = ''] = texts;
    const workdir = workFolder(run.cwd, cwd);
    if (!workdir.ok) return workdir;
    const holes = holeValues(adapter, run, { agent: effect.lane, workdir: workdir.value, folder });
    const base = adapterEnvironment(adapter, run.environment, holes);
    if (!base.ok) return base;
    const layers = environmentFor({ base: inRun(base.value, run), run, effect, own: {} });
    if (!layers.ok) return layers;
    const environment = { ...wholeEnvironment(layers.value), MEOW_AGENT: effect.lane };
    const laidOut = layOut(adapter, holes, run.environment);
    if (!laidOut.ok) return laidOut;
    const { session } = effect;
    return ok({
      prompt,
      model: model === '' ? null : model,
      effort: effort === '' ? null : effort,
      args: null,
      session:
        session.kind === 'fresh'
          ? { kind: 'fresh', id: null }
          : session.kind === 'resume'
            ? session
            : { ...session, newId: null },
      workdir: workdir.value,
      holes,
      environment,
      hooked: true,
    });
  }
}

/** One that has turns, and whose output can be read. An error is a sentence. */
function headlessAdapter(name: string, adapters: AdapterNamed): Result<Adapter, string> {
  const adapter = adapters(name);
  if (!adapter.ok) return adapter;
  const { headless } = adapter.value;
  if (headless === null) return err(`the adapter ${name} has no way to work without a terminal`);
  const reader = readerNamed(headless.reader);
  return reader.ok ? adapter : reader;
}

/** Of those who do not want to be told. */
const unheard: Note = () => Promise.resolve();

function unparked(outcome: Outcome): Outcome {
  if (outcome.kind === 'success' || outcome.failure.retryAt === null) return outcome;
  return { kind: 'failure', failure: { ...outcome.failure, retryAt: null } };
}

function notStarted(reason: string): Outcome {
  return failed('not-started', `the agent could not be started: ${reason}`);
}

function failed(kind: FailureKind, message: string): Outcome {
  return { kind: 'failure', failure: failure(kind, message) };
}
