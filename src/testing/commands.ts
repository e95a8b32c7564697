// Commands of a test that do not really run: rules answer them, a single call of `meow` is answered by the run itself, and
// every other command is refused.

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

import { segmentMatcher } from '../base/names.ts';
import { formatDuration } from '../base/time.ts';
import { commandOutcome } from '../drivers/outputs.ts';
import { stepFile, stepFolder } from '../drivers/step-folder.ts';
import type { RunFiles } from '../engine/ports.ts';
import type { CommandSpec, Effect } from '../ir/effect.ts';
import { type MeowCall, meowCallOf } from '../ir/meow-call.ts';
import type { Program } from '../ir/program.ts';
import { type FilledText, plainText } from '../ir/text.ts';
import type { Answer, Message } from '../ipc/protocol.ts';
import { EXPIRED_EXIT_CODE } from '../kernel/gates.ts';
import { CLEANUP_STEP } from '../kernel/state.ts';
import { failed } from './agents.ts';
import type { SimulatedProcess } from './processes.ts';
import type { CommandRule } from './test-file.ts';

export interface CommandWorld {
  readonly rules: readonly CommandRule[];
  readonly namesOf: StepNames;
  readonly files: RunFiles;
  /** The default folder of commands. */
  readonly cwd: string;
  text(text: FilledText): string;
  now(): number;
  after(ms: number, call: () => void): () => void;
  /** Something real happens: the clock stands still until it has ended. */
  during<T>(happening: Promise<T>): Promise<T>;
  /** Null if the sender has gone away. */
  send(message: Message, gone: AbortSignal): Promise<Answer | null>;
  used(rule: CommandRule): void;
  refused(refusal: RefusedCommand): void;
  failed(error: unknown): void;
}

export interface RefusedCommand {
  readonly step: string;
  readonly script: string;
}

interface CommandEnd {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly files: Readonly<Record<string, string>>;
}

const SILENT: CommandEnd = { status: 0, stdout: '', stderr: '', files: {} };

export class SimulatedCommands {
  readonly #world: CommandWorld;
  /** How often a step has followed a rule. */
  readonly #followed = new Map<CommandRule, Map<string, number>>();
  /** Calls that wait for an answer of the run. */
  readonly #calls = new Map<SimulatedProcess, AbortController>();

  constructor(world: CommandWorld) {
    this.#world = world;
  }

  /** Whether the test itself answers the command: a single call of `meow`. */
  isOwn({ script }: CommandSpec<FilledText>): boolean {
    return meowCallOf(this.#world.text(script))?.usesFiles === false;
  }

  /** The rule that answers the command. A rule for many steps does not answer what the test itself answers. */
  ruleFor(effect: Effect, spec: CommandSpec<FilledText>): CommandRule | null {
    const script = this.#world.text(spec.script);
    const isOwn = this.isOwn(spec);
    const names = this.#world.namesOf(effect.step);
    const base = names.at(-1) ?? effect.step;
    return (
      this.#world.rules.find((rule) => {
        if (rule.step !== null && !names.some(segmentMatcher(rule.step))) return false;
        if (rule.script !== null && !rule.script.test(script)) return false;
        if (isOwn && rule.script === null && rule.step?.endsWith('*') === true) return false;
        return rule.times === null || (this.#followed.get(rule)?.get(base) ?? 0) < rule.times;
      }) ?? null
    );
  }

  begin(process: SimulatedProcess, spec: CommandSpec<FilledText>): void {
    const { effect } = process;
    const script = this.#world.text(spec.script);
    const rule = this.ruleFor(effect, spec);
    const call = rule === null ? meowCallOf(script) : null;
    if (rule !== null) return this.#follow(process, spec, rule);
    if (call !== null && !call.usesFiles) return this.#call(process, spec, call);
    const step = this.#world.namesOf(visitOf(effect.step))[0] ?? effect.step;
    this.#world.refused({ step, script });
    process.finish(failed('not-started', 'the test has no rule for this command'));
  }

  stop(process: SimulatedProcess): void {
    this.#calls.get(process)?.abort();
    process.finish(failed('stopped', 'the command was stopped'));
  }

  #follow(process: SimulatedProcess, spec: CommandSpec<FilledText>, rule: CommandRule): void {
    const base = this.#world.namesOf(process.effect.step).at(-1) ?? '';
    const counts = this.#followed.get(rule) ?? new Map<string, number>();
    this.#followed.set(rule, counts.set(base, (counts.get(base) ?? 0) + 1));
    this.#world.used(rule);
    const { takesMs, exit: status, stdout, stderr, files } = rule;
    const { idleMs } = spec;
    if (idleMs !== undefined && (takesMs === null || takesMs > idleMs)) {
      const message = `the command gave no sign of life for ${formatDuration(idleMs)}`;
      this.#world.after(idleMs, () => process.finish(failed('idle', message)));
      return;
    }
    if (takesMs !== null) this.#world.after(takesMs, () => this.#end(process, spec, { status, stdout, stderr, files }));
  }

  #end(process: SimulatedProcess, spec: CommandSpec<FilledText>, end: CommandEnd): void {
    if (!process.isRunning) return;
    const { effect } = process;
    const { files } = this.#world;
    const cwd = spec.cwd === null ? this.#world.cwd : resolve(this.#world.cwd, this.#world.text(spec.cwd));
    for (const [path, text] of Object.entries(end.files)) write(join(cwd, path), text);
    const folder = stepFolder(files, effect.step, effect.attempt, 'start');
    if (end.stdout !== '' || readsOutput(spec)) write(stepFile(folder, 'stdout'), end.stdout);
    if (end.stderr !== '' || readsOutput(spec)) write(stepFile(folder, 'stderr'), end.stderr);
    this.#world
      .during(commandOutcome(spec, { files, folder, cwd, status: end.status }))
      .then((outcome) => process.finish(outcome))
      .catch((error: unknown) => this.#world.failed(error));
  }

  #call(process: SimulatedProcess, spec: CommandSpec<FilledText>, call: MeowCall): void {
    const gone = new AbortController();
    this.#calls.set(process, gone);
    this.#answer(process.effect, call, gone.signal)
      .then((end) => {
        this.#calls.delete(process);
        const discarded = Object.fromEntries(call.discards.map((stream) => [stream, '']));
        if (end !== null) this.#end(process, spec, { ...SILENT, ...end, ...discarded });
      })
      .catch((error: unknown) => this.#world.failed(error));
  }

  /** What the command `meow` would print, and how it would end; null if nobody waits for it. */
  async #answer(effect: Effect, call: MeowCall, gone: AbortSignal): Promise<Partial<CommandEnd> | null> {
    const message = messageOf(effect, call, this.#world.now());
    if (typeof message === 'string') return { status: 2, stderr: `meow: ${message}\n` };
    const answer = await this.#world.send(message, gone);
    if (answer === null) return null;
    const complaint = { stderr: `meow: ${'message' in answer ? answer.message : answer.kind}\n` };
    switch (answer.kind) {
      case 'gate-decided': {
        const text = answer.answer ?? answer.notes ?? '';
        return { status: answer.approved ? 0 : 1, stdout: text === '' ? '' : `${text}\n` };
      }
      case 'event-received':
      case 'event-match': {
        const { data, agent, event_type: type } = answer;
        const lines = Object.entries(data).map(([name, value]) => `${name}=${plainText(value)}\n`);
        return {
          stdout:
            call.kind === 'await-event' && call.json ? `${JSON.stringify({ type, agent, data })}\n` : lines.join(''),
        };
      }
      case 'step-status': {
        const { is, isNot } = call.kind === 'step-status' ? call : { is: null, isNot: null };
        const isWrong = (is !== null && is !== answer.status) || isNot === answer.status;
        return { status: isWrong ? 1 : 0, stdout: `${answer.status}\n` };
      }
      case 'ack':
        return {};
      case 'timeout':
        return { ...complaint, status: call.kind === 'await-approval' ? EXPIRED_EXIT_CODE : 1 };
      case 'released':
        return { ...complaint, status: 1 };
      default:
        return { ...complaint, status: 2 };
    }
  }
}

/** The message of a call, or why it is wrong. It waits until the same moment, whichever engine answers. */
function messageOf({ step, attempt }: Effect, call: MeowCall, now: number): Message | string {
  const asking = `${step}#${attempt}`;
  if (call.kind === 'event') return { kind: 'event', id: asking, eventType: call.type, agent: null, data: call.data };
  if (call.kind === 'step-status') return { kind: 'step-status', step: call.step, asker: step, agent: null };
  const { timeout, timeoutMs } = call;
  if (timeout !== null && timeoutMs === null) return `${JSON.stringify(timeout)} is not a duration`;
  const deadline = timeoutMs === null ? null : now + timeoutMs;
  const waiting = { step, attempt, agent: null, timeoutMs, deadline };
  if (call.kind === 'await-event')
    return { kind: 'await-event', eventType: call.type, filter: call.filter, asking, compat: false, ...waiting };
  const approvers = call.approvers.length === 0 ? null : call.approvers;
  return { kind: 'await-approval', gate: call.gate, prompt: call.prompt, approvers, ...waiting };
}

/** Whether somebody reads the files of its output. */
function readsOutput({ captures, steering }: CommandSpec<FilledText>): boolean {
  return steering !== null || captures.some(({ from }) => from.kind === 'stdout' || from.kind === 'stderr');
}

/**
 * The names by which a test may mean a step: its id, the visit that it is a part of (`check#2` for `check#2.tests`), and that
 * without its number (`check`; in a state machine, `REVIEW` for `main.3.REVIEW`).
 */
export type StepNames = (step: string) => readonly string[];

export function namesIn({ machines }: Pick<Program, 'machines'>): StepNames {
  const hasStates = Object.keys(machines).length > 0;
  return (step) => {
    if (step === CLEANUP_STEP) return ['cleanup'];
    const visit = visitOf(step);
    const unnumbered = visit.replace(/#\d+$/, '');
    const base = hasStates ? unnumbered.replace(/^.*\.\d+\.(?=[^.]+$)/, '') : unnumbered;
    return [...new Set([step, visit, base])];
  };
}

/** Views show the visit of a Conductor step, and not its parts. */
function visitOf(step: string): string {
  return /^.*#\d+(?=\.[^#]*$)/.exec(step)?.[0] ?? step;
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
