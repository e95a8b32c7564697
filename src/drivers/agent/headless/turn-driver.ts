// The driver of headless turns: each effect is one run of an agent's program, in the session of its step (turn.ts, turn/1 to
// turn/4). Failures of the outside world are failures in the answer; an exception is a bug, and ends the engine.

import { assert } from '../../../base/assert.ts';
import { err, ok } from '../../../base/result.ts';
import type { Result } from '../../../base/result.ts';
import type { Answer, Driver, Note, StopHow } from '../../../engine/ports.ts';
import type { Adapter } from '../../../ir/adapter.ts';
import type { Effect, Outcome, TurnSpec } from '../../../ir/effect.ts';
import { failure } from '../../../ir/failure.ts';
import type { FailureKind } from '../../../ir/failure.ts';
import type { FilledText } from '../../../ir/text.ts';
import { adapterEnvironment, holeValues, layOut } from '../render-adapter.ts';
import { PendingEffects } from '../../pending-effect.ts';
import type { PendingEffect } from '../../pending-effect.ts';
import { environmentFor, inRun, markerOf } from '../../environment.ts';
import { wholeEnvironment } from '../../../sys/process.ts';
import type { DriverContext } from '../../environment.ts';
import type { AdapterNamed } from '../host-registry.ts';
import { readerNamed } from '../readers/named.ts';
import { Spawner } from '../../spawner.ts';
import { stepFolder } from '../../step-folder.ts';
import { resolveText } from '../../resolve-text.ts';
import { resolveWorkdir } from '../../resolve-workdir.ts';
import { turnOutcome } from './outcome.ts';
import type { SessionRegistry } from './session-registry.ts';
import { TurnLauncher } from './turn-launcher.ts';
import { stateOf, Turn } from './turn.ts';
import type { TurnPlace, TurnStart } from './turn.ts';

export interface TurnDriverOptions extends DriverContext {
  readonly adapters: AdapterNamed;
  /** The run's. */
  readonly sessions: SessionRegistry;
  /** Wait out usage limits instead of failing. */
  readonly parks?: boolean;
  /** Time between the stop signal and the kill; default: 10 seconds. */
  readonly graceMs?: number;
}

export function turnDriver(options: TurnDriverOptions): Driver {
  return new TurnDriver(options);
}

const GRACE_MS = 10_000;

class TurnDriver implements Driver {
  readonly #options: TurnDriverOptions;
  readonly #open = new PendingEffects();
  readonly #launcher: TurnLauncher;
  /** The effect that the engine will start next; the first if there are many. */
  #prepared: { readonly effect: string; readonly turn: Turn } | null = null;

  constructor(options: TurnDriverOptions) {
    this.#options = options;
    this.#launcher = new TurnLauncher(options.spawner ?? new Spawner(options.environment));
  }

  start(effect: Effect, answer: Answer, note: Note = unheard): void {
    const prepared = this.#prepared?.effect === effect.id ? this.#prepared.turn : null;
    if (prepared !== null) {
      this.#prepared = null;
      // It starts at once, and runs while the engine does the rest of its work.
      prepared.beginPrepared();
    }
    this.#ask(effect, answer, (asked, spec) =>
      this.#perform({ how: 'start', effect, spec, asked, note, begun: prepared }),
    );
  }

  find(effect: Effect, answer: Answer, note: Note = unheard): void {
    this.#ask(effect, answer, (asked, spec) => this.#perform({ how: 'find', effect, spec, asked, note, begun: null }));
  }

  stop(effectId: string, how: StopHow): void {
    this.#open.get(effectId)?.stop(how);
  }

  prepare(effect: Effect): void {
    if (this.#prepared !== null || effect.spec.kind !== 'turn') return;
    const adapter = this.#adapterOf(effect.spec);
    if (!adapter.ok) return;
    const place = this.#placeOf(effect, effect.spec, adapter.value);
    const start = this.#startOf('start', effect, effect.spec, place);
    // `start` reports the reason.
    if (!start.ok) return;
    const turn = new Turn(place);
    turn.prepare(start.value);
    this.#prepared = { effect: effect.id, turn };
  }

  #ask(
    effect: Effect,
    answer: Answer,
    perform: (asked: PendingEffect, spec: TurnSpec<FilledText>) => Promise<Outcome>,
  ): void {
    const { spec } = effect;
    assert(spec.kind === 'turn', `no turn: ${effect.id} is a ${spec.kind}`);
    this.#open.ask(effect.id, answer, (asked) => perform(asked, spec));
  }

  /** `begun`: a turn that has begun already. */
  async #perform(request: {
    readonly how: 'start' | 'find';
    readonly effect: Effect;
    readonly spec: TurnSpec<FilledText>;
    readonly asked: PendingEffect;
    readonly note: Note;
    readonly begun: Turn | null;
  }): Promise<Outcome> {
    const { how, effect, spec, asked, note, begun } = request;
    const adapter = this.#adapterOf(spec);
    if (!adapter.ok) return notStarted(adapter.error);
    const place = this.#placeOf(effect, spec, adapter.value);
    const turn = begun ?? new Turn(place);
    if (begun === null) {
      if (how === 'find' && stateOf(place) !== 'never') turn.adopt();
      else if (asked.isStopped) return failed('stopped', 'the agent was stopped before it was started');
      else {
        const start = this.#startOf(how, effect, spec, place);
        if (!start.ok) return notStarted(start.error);
        turn.begin(start.value);
      }
    }
    turn.watchSession((session) => void note({ session }));
    void asked.stopped.then(({ force }) => turn.stop('stopped', force ? 0 : place.graceMs));
    void asked.forced.then(() => turn.stop('stopped', 0));
    const { files } = this.#options;
    const { folder, idleMs } = place;
    const outcome = await turnOutcome(await turn.ended, { files, folder, adapter: adapter.value, idleMs });
    return this.#options.parks === false ? unparked(outcome) : outcome;
  }

  #placeOf(effect: Effect, { idleMs }: TurnSpec<FilledText>, adapter: Adapter): TurnPlace {
    return {
      folder: stepFolder(this.#options.files, effect.step, effect.attempt),
      marker: markerOf(this.#options, effect.id),
      adapter,
      sessions: this.#options.sessions,
      idleMs,
      graceMs: this.#options.graceMs ?? GRACE_MS,
      background: false,
      launcher: this.#launcher,
    };
  }

  /** An error is a sentence. */
  #adapterOf(spec: TurnSpec<FilledText>): Result<Adapter, string> {
    const name = resolveText(spec.adapter, this.#options.files);
    return name.ok ? headlessAdapter(name.value, this.#options.adapters) : name;
  }

  /** An error is a sentence. */
  #startOf(
    how: 'start' | 'find',
    effect: Effect,
    spec: TurnSpec<FilledText>,
    { adapter, folder }: TurnPlace,
  ): Result<TurnStart, string> {
    const run = this.#options;
    const texts: string[] = [];
    for (const text of [spec.prompt, spec.cwd ?? '', spec.model ?? '', spec.effort ?? '']) {
      const whole = resolveText(text, run.files);
      if (!whole.ok) return whole;
      texts.push(whole.value);
    }
    const [prompt = '', cwd = '', model = '', effort = ''] = texts;
    const workdir = resolveWorkdir(run.cwd, cwd);
    if (!workdir.ok) return workdir;
    const holes = holeValues(adapter, run, { agent: effect.lane, workdir: workdir.value, folder: folder.path });
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
      again: how === 'find',
      workdir: workdir.value,
      holes,
      environment,
      hooked: true,
    });
  }
}

/** An adapter with a headless profile and a known reader. An error is a sentence. */
function headlessAdapter(name: string, adapters: AdapterNamed): Result<Adapter, string> {
  const adapter = adapters(name);
  if (!adapter.ok) return adapter;
  const { headless } = adapter.value;
  if (headless === null) return err(`the adapter ${name} has no way to work without a terminal`);
  const reader = readerNamed(headless.reader);
  return reader.ok ? adapter : reader;
}

/** For callers without a note. */
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
