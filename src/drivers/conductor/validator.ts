// One validator, from the look at what it would run to the record of what it came to.
//
//   V1  What must not be run, or cannot, is recorded and not started.
//   V2  What it is to do is written down before it begins (`validator.json` in the folder of its attempt), together with
//       what its globs match by then: a later life of the engine goes by that, and never takes away what this attempt wrote.
//   V3  It ends by itself, or is ended with all its processes: when its time is up, when it has been silent for too long,
//       when its step is stopped. Why we end it is written down before it is sent a signal.
//   V4  When it has ended, so have its children, save those that have left for a session of their own.
//   V5  What it has said and written is kept however it ended. A declared artifact that is absent, and a harness report that
//       is none, make an error of a success; of nothing else.

import { existsSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isErrno } from '../../sys/errno.ts';
import { err, ok } from '../../base/result.ts';
import type { Result } from '../../base/result.ts';
import { formatDuration } from '../../base/time.ts';
import type { Driver } from '../../engine/ports.ts';
import { shellWord } from '../../ir/quote.ts';
import type { FailureKind } from '../../ir/failure.ts';
import { OUTCOME_OF } from '../../ir/conducted.ts';
import type { Mechanical, ScriptValidator, ValidateSpec, Validator } from '../../ir/conducted.ts';
import { tail } from '../capture-outputs.ts';
import { fileName, makeStepFolder, readExit, readProcess, stepFolder } from '../step-folder.ts';
import type { StepFolder } from '../step-folder.ts';
import { readJsonFile, writeJsonFile } from '../../sys/json-file.ts';
import { resolveWorkdir } from '../resolve-workdir.ts';
import { beganAt } from './artifacts.ts';
import type { VisitFolder } from './artifacts.ts';
import { ask } from './asking.ts';
import type { Answered } from './asking.ts';
import { collect, foundBefore, patternsOf } from './collect.ts';
import type { Collected, CollectedArtifact, CollectedReport, Found } from './collect.ts';
import type { OpcodeContext, Performance } from './context.ts';
import { findEntrypoint, isWithin } from './entrypoint.ts';
import type { Refusal } from './entrypoint.ts';
import { innerCommand } from './inner.ts';
import { interpolate } from './interpolate.ts';
import type { Places } from './interpolate.ts';
import { Limits } from './limits.ts';
import { endLeft } from './looks.ts';
import { networkDenial, withoutNetwork } from './network.ts';
import { makeScratchFolder, WITHOUT_RUN } from './script-environment.ts';

/** What all validators of a step have around them. */
export interface Around {
  readonly context: OpcodeContext;
  readonly performance: Performance<ValidateSpec>;
  readonly places: Places;
  readonly visit: VisitFolder;
  /** Of script validators, and of the others. */
  readonly drivers: Readonly<Record<Validator['kind'], Driver>>;
}

export interface Validated {
  readonly record: ValidatorRecord;
  /** Null where it completed. */
  readonly kind: FailureKind | null;
  readonly reports: readonly CollectedReport[];
  /** The end of what it said. */
  readonly output: string | null;
}

/** As the outputs of the step have it. */
export type ValidatorRecord = {
  readonly id: string;
  readonly kind: Validator['kind'];
  readonly command: string;
  readonly outcome: Mechanical;
  readonly exit_code: number | null;
  readonly message: string | null;
  readonly duration_ms: number | null;
  readonly network: 'denied' | 'open';
  /** By which means, or why not. */
  readonly network_reason: string;
  readonly artifacts: readonly CollectedArtifact[];
};

/** What a validator is to do, before it begins (V2). */
interface Intention {
  readonly command: string;
  readonly script: string;
  readonly cwd: string;
  readonly network: ValidatorRecord['network'];
  readonly networkReason: string;
  readonly found: Found;
  /** We have ended it (V3). */
  readonly ended: Ended | null;
}

interface Ended {
  readonly limit: 'timeout' | 'idle';
  readonly at: number;
}

/** How it ended, apart from what it left. */
interface End {
  /** Null where it completed. */
  readonly kind: FailureKind | null;
  readonly code: number | null;
  readonly message: string | null;
}

/** `earlier`: what passes before this one have collected. `lost` and `stopped`: nothing is to be made of it. */
export async function runValidator(
  around: Around,
  validator: Validator,
  earlier: readonly CollectedArtifact[],
): Promise<Validated | 'lost' | 'stopped'> {
  const { context, performance, places, visit } = around;
  const inner = innerCommand(performance.effect, validator.id, NOTHING);
  const folder = stepFolder(context.run.files, inner.step, inner.attempt);
  const written = readJsonFile(join(folder.path, INTENTION)) as Intention | null;
  const intended = written === null ? await intend(around, validator, earlier) : ok(written);
  if (!intended.ok) return refused(validator, intended.error);
  const intention = intended.value;
  if (written === null) {
    makeStepFolder(folder.path);
    writeJsonFile(join(folder.path, INTENTION), intention);
  }
  const { answered, ended } = await perform(around, validator, intention, folder);
  const end = endOf(answered, ended, validator, performance.spec);
  if (end === 'lost' || end === 'stopped') return end;
  if (hasGroup(folder)) await endLeft(context.run, inner);

  for (const stream of ['stdout', 'stderr'] as const) {
    const file = join(folder.path, stream);
    if (existsSync(file)) visit.link(`validation_${stream}`, `${fileName(validator.id)}.${stream}`, file);
  }
  const patterns = patternsOf(validator.artifacts, intention.cwd, places);
  const nothing: Collected = { artifacts: [], reports: [], problems: [] };
  const { artifacts, reports, problems } = patterns.ok
    ? await collect(patterns.value, intention.found, { id: validator.id, places, visit })
    : nothing;
  const invalid = reports.flatMap(({ path, problem }) => (problem === null ? [] : [`${path} ${problem}`]));
  const messages = [...problems.map(({ message }) => message), ...invalid];
  const kind = end.kind ?? problems[0]?.kind ?? (invalid.length > 0 ? 'output-invalid' : null);
  const sentences = [...(end.message === null ? [] : [end.message]), ...messages];
  const { command, network, networkReason } = intention;
  return {
    record: {
      id: validator.id,
      kind: validator.kind,
      command,
      outcome: kind === null ? 'completed' : (OUTCOME_OF[kind] ?? 'error'),
      exit_code: end.code,
      message: sentences.length === 0 ? null : sentences.join('; '),
      duration_ms: durationOf(folder, ended),
      network,
      network_reason: networkReason,
      artifacts,
    },
    kind,
    reports,
    output: kind === null ? null : tail(folder),
  };
}

const INTENTION = 'validator.json';
const NOTHING = { script: '', cwd: null };

/** With its time and its silence looked after. */
async function perform(
  around: Around,
  validator: Validator,
  intention: Intention,
  folder: StepFolder,
): Promise<{ readonly answered: Answered; readonly ended: Ended | null }> {
  const { performance, drivers } = around;
  const driver = drivers[validator.kind];
  const { script, cwd } = intention;
  const effect = innerCommand(performance.effect, validator.id, { script, cwd });
  let { ended } = intention;
  const end = (): void => driver.stop(effect.id, { force: false, why: 'timeout' });
  const answer = ask(driver, effect, performance);
  const begunAt = beganAt(join(folder.path, 'status')) ?? Date.now();
  const { timeoutMs } = validator;
  const limits = new Limits({
    timeMs: timeoutMs === null ? null : Math.max(0, timeoutMs - (Date.now() - begunAt)),
    idleMs: performance.spec.idleMs,
    files: [join(folder.path, 'stdout'), join(folder.path, 'stderr')],
    reached(limit) {
      if (performance.asked.isStopped) return;
      if (ended === null) {
        ended = { limit, at: Date.now() };
        writeJsonFile(join(folder.path, INTENTION), { ...intention, ended });
      }
      end();
    },
  });
  // In an earlier life of the engine, which may not have come to an end with it.
  if (ended !== null) end();
  const answered = await answer;
  limits.close();
  return { answered, ended };
}

/** Whether something is left of what the shell began. To ask for that is cheap; to look for all that was left is dear. */
function hasGroup(folder: StepFolder): boolean {
  const record = readProcess(folder);
  if (record.kind !== 'written') return false;
  try {
    process.kill(-record.pid, 0);
    return true;
  } catch (error) {
    if (isErrno(error, 'ESRCH', 'EPERM')) return false;
    throw error;
  }
}

function endOf(
  { outcome, stop }: Answered,
  ended: Ended | null,
  { timeoutMs }: Validator,
  { idleMs }: ValidateSpec,
): End | 'lost' | 'stopped' {
  if (outcome.kind === 'success') return { kind: null, code: 0, message: null };
  const { kind, code, message } = outcome.failure;
  if (kind !== 'lost' && kind !== 'stopped') return { kind, code, message };
  const killed = (limit: Ended['limit'], why: string): End => ({
    kind: limit,
    code: null,
    message: why + leftIn(message),
  });
  if (ended?.limit === 'timeout') return killed('timeout', `it took longer than ${formatDuration(timeoutMs ?? 0)}`);
  if (ended?.limit === 'idle') return killed('idle', `it was silent for ${formatDuration(idleMs ?? 0)}`);
  if (stop?.why === 'timeout') return killed('timeout', 'the time of its step was up');
  return kind;
}

/** Processes that could not be ended are named behind the reason. */
function leftIn(message: string): string {
  const at = message.indexOf('; ');
  return at === -1 ? '' : message.slice(at);
}

/** From the shell's first record to its last, or to the moment in which we ended it. */
function durationOf(folder: StepFolder, ended: Ended | null): number | null {
  const status = join(folder.path, 'status');
  const begunAt = beganAt(status);
  if (begunAt === null) return null;
  const endedAt = ended?.at ?? (readExit(folder) === null ? Date.now() : statSync(status).mtimeMs);
  return Math.max(0, Math.round(endedAt - begunAt));
}

async function intend(
  around: Around,
  validator: Validator,
  earlier: readonly CollectedArtifact[],
): Promise<Result<Intention, Refusal>> {
  const { places } = around;
  const cwd = cwdOf(validator, places);
  if (!cwd.ok) return cwd;
  const patterns = patternsOf(validator.artifacts, cwd.value, places);
  if (!patterns.ok) return err({ outcome: 'error', message: patterns.error });
  const command =
    validator.kind === 'builtin' ? ok(plainCommand(validator.command)) : await scriptCommand(around, validator);
  if (!command.ok) return command;
  const found = await foundBefore(patterns.value, earlier, places);
  if (!found.ok) return err({ outcome: 'error', message: found.error });
  return ok({ ...command.value, cwd: cwd.value, found: found.value, ended: null });
}

type Command = Pick<Intention, 'command' | 'script' | 'network' | 'networkReason'>;

function plainCommand(command: string): Command {
  const networkReason = "a project's own command is run as its user would";
  return { command, script: command, network: 'open', networkReason };
}

async function scriptCommand(
  { context, places }: Around,
  { entrypoint, args }: ScriptValidator,
): Promise<Result<Command, Refusal>> {
  const texts: string[] = [];
  for (const text of [entrypoint, ...args]) {
    const filled = interpolate(text, places);
    if (!filled.ok) return err({ outcome: 'error', message: filled.error });
    texts.push(filled.value);
  }
  const [program = '', ...rest] = texts;
  const { runDir, runDirName, run, settings } = context;
  const allowed = settings.allowedEntrypoints;
  const words = findEntrypoint({ entrypoint: program, worktree: places.worktree, runDir, runDirName, allowed });
  if (!words.ok) return words;
  makeScratchFolder(run);
  const denial = await networkDenial(run.environment);
  const whole = withoutNetwork(denial, [...words.value, ...rest], run.files.localPath(''));
  return ok({
    command: texts.map(shellWord).join(' '),
    script: `${WITHOUT_RUN}${whole.map(shellWord).join(' ')}`,
    network: denial.kind,
    networkReason: denial.kind === 'denied' ? denial.how : denial.why,
  });
}

/** In the worktree or the run's directory. */
function cwdOf({ cwd }: Validator, places: Places): Result<string, Refusal> {
  if (cwd === null) return ok(places.worktree);
  const filled = interpolate(cwd, places);
  const folder = filled.ok ? resolveWorkdir(places.worktree, filled.value) : filled;
  if (!folder.ok) return err({ outcome: 'error', message: folder.error });
  const real = realpathSync.native(folder.value);
  const trees = [places.worktree, places.run_dir].map((tree) => realpathSync.native(tree));
  if (trees.some((tree) => real === tree || isWithin(tree, real))) return folder;
  const message = `its folder ${cwd} is neither in the worktree nor in the run's directory`;
  return err({ outcome: 'killed_policy', message });
}

function refused(validator: Validator, { outcome, message }: Refusal): Validated {
  const { id, kind } = validator;
  const command =
    validator.kind === 'builtin' ? validator.command : [validator.entrypoint, ...validator.args].join(' ');
  const ran = { exit_code: null, duration_ms: null, artifacts: [] };
  const network = { network: 'denied', network_reason: 'it was not started' } as const;
  return {
    record: { id, kind, command, outcome, message, ...ran, ...network },
    kind: outcome === 'killed_policy' ? 'policy' : 'not-started',
    reports: [],
    output: null,
  };
}
