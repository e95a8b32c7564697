// The driver of headless turns: each effect is one run of an agent's program, in the session of its step (turn.ts, turn/1 to
// turn/4). Failures of the outside world are failures in the answer; an exception is a bug, and ends the engine.

import { assert, err, ok, type Result } from '../../../base/errors.ts';
import type { Driver } from '../../../engine/ports.ts';
import type { Adapter } from '../../../ir/adapter.ts';
import type { Effect, Outcome, TurnSpec } from '../../../ir/effect.ts';
import type { FilledText } from '../../../ir/text.ts';
import { type DriverContext, markerOf, resolveWorkdir } from '../../environment.ts';
import { failed, resolveText, resolveTexts } from '../../outputs.ts';
import { ignoreProgress, PendingEffects } from '../../pending-effect.ts';
import { Spawner } from '../../spawner.ts';
import { discardForgedRecords, stepFolder, unlessRefused } from '../../step-folder.ts';
import type { AdapterNamed } from '../host.ts';
import { readerNamed } from '../readers/named.ts';
import { layOutFiles, ofStep, TurnRenderer } from '../render-adapter.ts';
import { turnOutcome } from './outcome.ts';
import type { SessionRegistry } from './sessions.ts';
import { TurnLauncher } from './turn-launcher.ts';
import { type Overspends, type PaidTurn, stateOf, Turn, type TurnPlace, type TurnStart } from './turn.ts';

export interface TurnDriverOptions extends DriverContext {
  readonly adapters: AdapterNamed;
  /** The run's. */
  readonly sessions: SessionRegistry;
  /** Wait out usage limits instead of failing. */
  readonly parks?: boolean;
  /** The answer of a simulated agent whose script has none; null: it makes up its own. */
  readonly unscripted?: (effect: Effect, prompt: string) => string | null;
  readonly overspends?: Overspends;
  /** Time between the stop signal and the kill; default: 10 seconds. */
  readonly graceMs?: number;
}

const GRACE_MS = 10_000;

export function turnDriver(options: TurnDriverOptions): Driver {
  const open = new PendingEffects();
  const renderer = new TurnRenderer(options);
  const launcher = new TurnLauncher(options.spawner ?? new Spawner(options.environment));
  const ask =
    (how: 'start' | 'find'): Driver['start'] =>
    (effect, answer, note = ignoreProgress) => {
      const { spec } = effect;
      assert(spec.kind === 'turn', `no turn: ${effect.id} is a ${spec.kind}`);
      open.ask(effect.id, answer, async (pending) => {
        const adapter = adapterOf(spec, options);
        if (!adapter.ok) return notStarted(adapter.error);
        const place: TurnPlace = {
          folder: stepFolder(options.files, effect.step, effect.attempt, how),
          marker: markerOf(options, effect.id),
          adapter: adapter.value,
          sessions: options.sessions,
          idleMs: spec.idleMs,
          graceMs: options.graceMs ?? GRACE_MS,
          background: false,
          overspends: (usage) => options.overspends?.(paidTurn(effect, spec, adapter.value), usage) ?? false,
          secrets: options.secrets,
          launcher,
        };
        const turn = new Turn(place, {
          session: (session) => void note({ session }),
          ...(spec.steering === null ? {} : { printed: (printed) => void note({ printed }) }),
        });
        if (how === 'find' && stateOf(place) !== 'never') turn.adopt();
        else if (pending.isStopped) return failed('stopped', 'the agent was stopped before it was started');
        else {
          const start = startOf(effect, spec, adapter.value, { options, renderer });
          if (!start.ok) return notStarted(start.error);
          const ready = unlessRefused(() =>
            ok(how === 'start' && discardForgedRecords(options.files, effect.step, effect.attempt)),
          );
          if (!ready.ok) return notStarted(ready.error);
          turn.begin(start.value);
        }
        void pending.stopped.then(({ force }) => turn.stop('stopped', force ? 0 : place.graceMs));
        void pending.forced.then(() => turn.stop('stopped', 0));
        const end = await turn.ended;
        const ended = await turnOutcome(end, { ...place, files: options.files, secrets: options.secrets });
        const isSteered = spec.steering !== null && end.kind === 'over' && ended.kind === 'success';
        const found = how === 'find' && end.kind === 'over' ? { endedAt: end.at } : {};
        const outcome = { ...(isSteered ? { ...ended, printed: end.printed } : ended), ...found };
        return options.parks === false ? unparked(outcome) : outcome;
      });
    };
  return { start: ask('start'), find: ask('find'), stop: (effectId, how) => open.get(effectId)?.stop(how) };
}

function paidTurn({ step }: Effect, { model }: TurnSpec<FilledText>, { name }: Adapter): PaidTurn {
  return { step, adapter: name, model: typeof model === 'string' ? model : null };
}

/** An adapter with a headless profile and a known reader. An error is a sentence. */
function adapterOf(spec: TurnSpec<FilledText>, { files, adapters }: TurnDriverOptions): Result<Adapter, string> {
  const name = resolveText(spec.adapter, files);
  if (!name.ok) return name;
  const adapter = adapters(name.value);
  if (!adapter.ok) return adapter;
  const { headless } = adapter.value;
  if (headless === null) return err(`the adapter ${name.value} has no way to work without a terminal`);
  const reader = readerNamed(headless.reader);
  return reader.ok ? adapter : reader;
}

/** An error is a sentence. */
function startOf(
  effect: Effect,
  spec: TurnSpec<FilledText>,
  adapter: Adapter,
  { options: run, renderer }: { readonly options: TurnDriverOptions; readonly renderer: TurnRenderer },
): Result<TurnStart, string> {
  const unresolved = { prompt: spec.prompt, cwd: spec.cwd ?? '', model: spec.model ?? '', effort: spec.effort ?? '' };
  const texts = resolveTexts(unresolved, run.files);
  if (!texts.ok) return texts;
  const { prompt, cwd, model, effort } = texts.value;
  const workdir = resolveWorkdir(run.cwd, cwd);
  if (!workdir.ok) return workdir;
  const rendered = renderer.render(adapter, { agent: effect.lane, workdir: workdir.value });
  if (!rendered.ok) return rendered;
  const { holes, environment: base } = rendered.value;
  const answer = adapter.mailbox ? (run.unscripted?.(effect, prompt) ?? null) : null;
  const own = answer === null ? {} : { MEOW_SIM_ANSWER: answer };
  const environment = ofStep(base, run, effect, { holes, own });
  if (!environment.ok) return environment;
  const laidOut = layOutFiles(adapter, rendered.value, run.environment);
  if (!laidOut.ok) return laidOut;
  return ok({
    prompt,
    model: model === '' ? null : model,
    effort: effort === '' ? null : effort,
    args: null,
    session: effect.session,
    workdir: workdir.value,
    holes,
    environment: environment.value,
    hooked: true,
  });
}

function unparked(outcome: Outcome): Outcome {
  if (outcome.kind === 'success' || outcome.failure.kind !== 'limit-reached') return outcome;
  return { ...outcome, failure: { ...outcome.failure, retryAt: null, parks: false } };
}

function notStarted(reason: string): Outcome {
  return failed('not-started', `the agent could not be started: ${reason}`);
}
