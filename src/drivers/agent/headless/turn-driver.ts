// The driver of headless turns: each effect is one run of an agent's program, in the session of its step (turn.ts, turn/1 to
// turn/4). Failures of the outside world are failures in the answer; an exception is a bug, and ends the engine.

import { assert, err, ok, type Result } from '../../../base/errors.ts';
import type { Answer, Driver, Note, StopHow } from '../../../engine/ports.ts';
import type { Adapter } from '../../../ir/adapter.ts';
import type { Effect, Outcome, TurnSpec } from '../../../ir/effect.ts';
import type { FilledText } from '../../../ir/text.ts';
import { type DriverContext, markerOf, resolveWorkdir } from '../../environment.ts';
import { failed, resolveText, resolveTexts } from '../../outputs.ts';
import { ignoreProgress, PendingEffects } from '../../pending-effect.ts';
import { Spawner } from '../../spawner.ts';
import { stepFolder } from '../../step-folder.ts';
import type { AdapterNamed } from '../host.ts';
import { readerNamed } from '../readers/named.ts';
import { agentEnvironment, layOut, turnHoles } from '../render-adapter.ts';
import { turnOutcome } from './outcome.ts';
import type { SessionRegistry } from './sessions.ts';
import { TurnLauncher } from './turn-launcher.ts';
import { stateOf, Turn, type TurnPlace, type TurnStart } from './turn.ts';

export interface TurnDriverOptions extends DriverContext {
  readonly adapters: AdapterNamed;
  /** The run's. */
  readonly sessions: SessionRegistry;
  /** Wait out usage limits instead of failing. */
  readonly parks?: boolean;
  /** The answer of a simulated agent whose script has none; null: it makes up its own. */
  readonly unscripted?: (effect: Effect, prompt: string) => string | null;
  /** Time between the stop signal and the kill; default: 10 seconds. */
  readonly graceMs?: number;
}

export function turnDriver(options: TurnDriverOptions): Driver {
  return new TurnDriver(options);
}

const GRACE_MS = 10_000;

type How = 'start' | 'find';

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

  start(effect: Effect, answer: Answer, note: Note = ignoreProgress): void {
    const prepared = this.#prepared?.effect === effect.id ? this.#prepared.turn : null;
    if (prepared !== null) {
      this.#prepared = null;
      // It starts at once, and runs while the engine does the rest of its work.
      prepared.beginPrepared();
    }
    this.#ask('start', effect, answer, note, prepared);
  }

  find(effect: Effect, answer: Answer, note: Note = ignoreProgress): void {
    this.#ask('find', effect, answer, note, null);
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

  /** `begun`: a turn that has begun already. */
  #ask(how: How, effect: Effect, answer: Answer, note: Note, begun: Turn | null): void {
    const { spec } = effect;
    assert(spec.kind === 'turn', `no turn: ${effect.id} is a ${spec.kind}`);
    this.#open.ask(effect.id, answer, async (pending) => {
      const adapter = this.#adapterOf(spec);
      if (!adapter.ok) return notStarted(adapter.error);
      const place = this.#placeOf(effect, spec, adapter.value);
      const turn = begun ?? new Turn(place);
      if (begun === null) {
        if (how === 'find' && stateOf(place) !== 'never') turn.adopt();
        else if (pending.isStopped) return failed('stopped', 'the agent was stopped before it was started');
        else {
          const start = this.#startOf(how, effect, spec, place);
          if (!start.ok) return notStarted(start.error);
          turn.begin(start.value);
        }
      }
      turn.watchSession((session) => void note({ session }));
      if (spec.steering !== null) turn.watchPrinted((printed) => void note({ printed }));
      void pending.stopped.then(({ force }) => turn.stop('stopped', force ? 0 : place.graceMs));
      void pending.forced.then(() => turn.stop('stopped', 0));
      const end = await turn.ended;
      const ended = await turnOutcome(end, { ...place, files: this.#options.files });
      const isSteered = spec.steering !== null && end.kind === 'over' && ended.kind === 'success';
      const found = how === 'find' && end.kind === 'over' ? { endedAt: end.at } : {};
      const outcome = { ...(isSteered ? { ...ended, printed: end.printed } : ended), ...found };
      return this.#options.parks === false ? unparked(outcome) : outcome;
    });
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

  /** An adapter with a headless profile and a known reader. An error is a sentence. */
  #adapterOf(spec: TurnSpec<FilledText>): Result<Adapter, string> {
    const name = resolveText(spec.adapter, this.#options.files);
    if (!name.ok) return name;
    const adapter = this.#options.adapters(name.value);
    if (!adapter.ok) return adapter;
    const { headless } = adapter.value;
    if (headless === null) return err(`the adapter ${name.value} has no way to work without a terminal`);
    const reader = readerNamed(headless.reader);
    return reader.ok ? adapter : reader;
  }

  /** An error is a sentence. */
  #startOf(how: How, effect: Effect, spec: TurnSpec<FilledText>, { adapter }: TurnPlace): Result<TurnStart, string> {
    const run = this.#options;
    const unresolved = { prompt: spec.prompt, cwd: spec.cwd ?? '', model: spec.model ?? '', effort: spec.effort ?? '' };
    const texts = resolveTexts(unresolved, run.files);
    if (!texts.ok) return texts;
    const { prompt, cwd, model, effort } = texts.value;
    const workdir = resolveWorkdir(run.cwd, cwd);
    if (!workdir.ok) return workdir;
    const filled = turnHoles(adapter, run, { agent: effect.lane, workdir: workdir.value });
    if (!filled.ok) return filled;
    const holes = filled.value;
    const answer = adapter.mailbox ? (run.unscripted?.(effect, prompt) ?? null) : null;
    const own = answer === null ? {} : { MEOW_SIM_ANSWER: answer };
    const environment = agentEnvironment(adapter, run, effect, holes, own);
    if (!environment.ok) return environment;
    const laidOut = layOut(adapter, holes, run.environment);
    if (!laidOut.ok) return laidOut;
    return ok({
      prompt,
      model: model === '' ? null : model,
      effort: effort === '' ? null : effort,
      args: null,
      session: effect.session,
      again: how === 'find',
      workdir: workdir.value,
      holes,
      environment: environment.value,
      hooked: true,
    });
  }
}

function unparked(outcome: Outcome): Outcome {
  if (outcome.kind === 'success' || outcome.failure.kind !== 'limit-reached') return outcome;
  return { ...outcome, failure: { ...outcome.failure, retryAt: null, parks: false } };
}

function notStarted(reason: string): Outcome {
  return failed('not-started', `the agent could not be started: ${reason}`);
}
