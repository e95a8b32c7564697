// Opcodes under test that need a repository and agents: both are real. An agent is a shell that runs a script of the
// test and stores its prompts. The history of the run is what the test defines, plus what has been performed since.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { err, ok } from '../../src/base/errors.ts';
import type { Json, JsonMap } from '../../src/base/json.ts';
import { SessionRegistry } from '../../src/drivers/agent/headless/sessions.ts';
import { turnDriver } from '../../src/drivers/agent/headless/turn-driver.ts';
import { limitedCommands } from '../../src/drivers/command/limited-commands.ts';
import type { Visit, VisitKind, Workspace } from '../../src/drivers/conductor/context.ts';
import { workspaceFor, type WorkspaceRequest, worktreePath } from '../../src/drivers/conductor/workspace.ts';
import { type DriverContext, processesOfRun } from '../../src/drivers/environment.ts';
import type { Answer, Driver } from '../../src/engine/ports.ts';
import { type AgentRequest, OUTCOME_OF, type Policy, type PromptText } from '../../src/ir/conductor.ts';
import type { Outcome, Progress } from '../../src/ir/effect.ts';
import { NO_RESTRICTIONS } from '../../src/ir/policy.ts';
import type { Evaluate, OpcodeSpec, RunAgent } from '../../src/languages/conductor/syntax.ts';
import { localRunFiles } from '../../src/stores/local-run-files.ts';
import { GitRig } from './git-rig.ts';
import { Visits } from './opcode-visit.ts';
import { FUNCTIONS, shellAdapter, withHoles } from './turn-rig.ts';

const FREE: Policy = NO_RESTRICTIONS;

const HINTS = { componentKind: null, evalProfile: null };
const LIMITS = { idleMs: null, tokensMax: null, usdMax: null };

type Wish = Partial<AgentRequest> & { readonly step?: string; readonly timeoutMs?: number };

let rigs = 0;

export class WorkRig implements AsyncDisposable {
  readonly runId = `wf-work-${process.pid}-${++rigs}`;
  readonly repository: GitRig;
  readonly runDir: string;
  /** Progress that was reported before the answer. */
  readonly notes: Progress[] = [];
  readonly #run: DriverContext;
  readonly #kind: WorkspaceRequest['kind'];
  readonly #visits: Visit[] = [];
  readonly #counts = new Map<string, number>();
  #alive = new AbortController();
  #workspace: Workspace;
  #turn: Driver;
  #command: Driver;
  readonly #performed: Visits;

  static async setup(kind: WorkspaceRequest['kind'] = 'worktree'): Promise<WorkRig> {
    const repository = await GitRig.setup();
    if (kind === 'in-place') repository.git('user', 'stash', '--quiet', '-u');
    return new WorkRig(repository, kind);
  }

  private constructor(repository: GitRig, kind: WorkspaceRequest['kind']) {
    this.repository = repository;
    this.#kind = kind;
    const project = repository.user;
    const meow = join(project, '.meow');
    const runFolder = join(meow, 'runs', this.runId);
    this.runDir = join(meow, 'run', this.runId);
    for (const folder of [runFolder, this.runDir]) mkdirSync(folder, { recursive: true });
    writeFileSync(join(meow, '.gitignore'), '*\n');
    this.#run = {
      runId: this.runId,
      mark: 'm',
      files: localRunFiles(runFolder),
      cwd: project,
      environment: {
        PATH: process.env['PATH'] ?? '',
        HOME: join(repository.base, 'home'),
        MEOW_RUN_DIR: this.runDir,
        RIG: repository.base,
        GIT_CONFIG_COUNT: '1',
        GIT_CONFIG_KEY_0: 'commit.gpgSign',
        GIT_CONFIG_VALUE_0: 'false',
      },
      socket: join(repository.base, 'sock'),
      inbox: join(runFolder, 'inbox'),
    };
    [this.#workspace, this.#turn, this.#command] = this.#life();
    const { runDir, runId, notes } = this;
    this.#performed = new Visits({
      context: {
        run: this.#run,
        runDir,
        runDirName: `.meow/run/${runId}`,
        workspace: { open: () => this.#workspace.open() },
        history: () => this.#visits,
        settings: { allowedEntrypoints: [], protectedBranches: ['main', 'release/*'] },
      },
      drivers: () => ({ command: this.#command, turn: this.#turn }),
      noted: (progress) => notes.push(progress),
    });
  }

  /** The engine has died and receives nothing more; another takes over the run. */
  nextLife(): void {
    this.#performed.die();
    this.#alive.abort();
    [this.#workspace, this.#turn, this.#command] = this.#life();
  }

  #life(): [Workspace, Driver, Driver] {
    this.#alive = new AbortController();
    const { signal } = this.#alive;
    const heardBy = (driver: Driver): Driver => {
      const hearing =
        (answer: Answer): Answer =>
        (outcome) => {
          if (!signal.aborted) answer(outcome);
        };
      return {
        start: (effect, answer, note) => driver.start(effect, hearing(answer), note),
        find: (effect, answer, note) => driver.find(effect, hearing(answer), note),
        stop: (effectId, how) => driver.stop(effectId, how),
      };
    };
    const sh = join(this.repository.base, 'agent.sh');
    const headless = {
      command: withHoles(`sh ${sh} fresh {{session_id}}`),
      resume: withHoles(`sh ${sh} resume {{session_id}}`),
    };
    const adapter = shellAdapter(headless);
    const adapters = (name: string) => (name === 'shell' ? ok(adapter) : err(`there is no adapter ${name}`));
    const { runId, runDir, repository } = this;
    return [
      workspaceFor({ runId, project: repository.user, runDir, environment: repository.environment, kind: this.#kind }),
      heardBy(turnDriver({ ...this.#run, adapters, sessions: new SessionRegistry(this.#run.files), graceMs: 200 })),
      heardBy(limitedCommands({ ...this.#run, graceMs: 200 })),
    ];
  }

  /**
   * Sets what the agent does from now on, in its worktree. Its prompt is in $RIG/told, and all its prompts in
   * $RIG/told.all.
   */
  agent(script: string): void {
    const lines = [`cat > "$RIG/told"`, `cat "$RIG/told" >> "$RIG/told.all"`, `. '${FUNCTIONS}'`, 'init', script];
    writeFileSync(join(this.repository.base, 'agent.sh'), `${lines.join('\n')}\n`);
  }

  get told(): string {
    return this.file('told');
  }

  /** Below the folder that contains everything. */
  file(name: string): string {
    const path = join(this.repository.base, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  at(name: string): string {
    return join(this.repository.base, name);
  }

  get worktree(): string {
    return this.#kind === 'worktree' ? worktreePath(this.repository.user, this.runId) : this.repository.user;
  }

  inTree(name: string): string {
    return join(this.worktree, name);
  }

  /** Everything of the user that a run must not touch. */
  userPicture(): unknown {
    const { files, ...rest } = this.repository.userPicture() as { readonly files: readonly [string, string][] };
    return { ...rest, files: files.filter(([name]) => !name.startsWith('.meow/')) };
  }

  git(...args: readonly string[]): string {
    return this.repository.git(this.worktree.slice(this.repository.base.length + 1), ...args);
  }

  artifact(visit: string, name: string): string {
    return readFileSync(join(this.runDir, 'artifacts', visit.replace('#', '/'), name), 'utf8');
  }

  json(visit: string, name: string): JsonMap {
    return JSON.parse(this.artifact(visit, name)) as JsonMap;
  }

  /** Adds an earlier visit to the history. */
  past(visit: Partial<Visit> & Pick<Visit, 'kind'>): void {
    const step = visit.step ?? visit.kind;
    const plain = { outcome: 'completed', failure: null, outputs: {}, startedAt: 0, endedAt: 1 };
    const number = this.#next(step);
    this.#visits.push({ id: `${step}#${number}`, step, visit: number, ...plain, ...visit });
  }

  work(
    wish: Wish & {
      text?: string;
      effective?: Partial<Policy>;
      witness?: RunAgent['witness'];
      policy?: RunAgent['policy'];
    } = {},
  ): Promise<Outcome> {
    const { text = 'Do it.', effective = {}, witness = null, step, timeoutMs, policy: pair, ...more } = wish;
    const policy = pair ?? { requested: null, effective: { ...FREE, ...effective } };
    const agent = {
      adapter: 'shell',
      model: null,
      prompt: prompt(text),
      inputs: [],
      limits: LIMITS,
      hints: HINTS,
      ...more,
    };
    return this.#perform('implement', { kind: 'run_agent', agent, policy, witness }, 'work', { step, timeoutMs });
  }

  evaluate(
    wish: Wish & { text?: string } & Partial<Pick<Evaluate, 'evaluator' | 'allowedNext' | 'partialMax'>> = {},
  ): Promise<Outcome> {
    const {
      text = 'Judge it.',
      evaluator,
      allowedNext = ['fix', 'gate'],
      partialMax = 3,
      step,
      timeoutMs,
      ...more
    } = wish;
    const agent = {
      adapter: 'shell',
      model: null,
      prompt: prompt(text),
      inputs: [],
      limits: LIMITS,
      hints: HINTS,
      ...more,
    };
    const by = evaluator ?? ({ kind: 'agent', agent } as const);
    const spec: Evaluate = { kind: 'evaluate', evaluator: by, allowedNext, partialMax, hints: agent.hints };
    return this.#perform('evaluate', spec, 'evaluate', { step, timeoutMs });
  }

  rollback(target: 'pre_run' | 'pre_step', { step }: { readonly step?: string } = {}): Promise<Outcome> {
    return this.#perform('rollback', { kind: 'rollback', target }, 'rollback', { step });
  }

  halt(verdict: 'success' | 'failure'): Promise<Outcome> {
    return this.#perform('STOP', { kind: 'stop', verdict, reason: null }, 'halt', {});
  }

  /** Stops what is in flight. */
  stop(why: 'timeout' | 'run-ending'): void {
    if (why === 'timeout') this.#performed.timeOut();
    else this.#performed.stop();
  }

  left(): readonly number[] {
    return processesOfRun(this.runId).map(({ pid }) => pid);
  }

  async #perform(
    name: string,
    spec: OpcodeSpec,
    kind: VisitKind,
    {
      step: visit = `${name}#${this.#next(name)}`,
      timeoutMs,
    }: { step?: string | undefined; timeoutMs?: number | undefined },
  ): Promise<Outcome> {
    const outcome = await this.#performed.perform({ visit, spec, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    this.#remember(visit, kind, outcome);
    return outcome;
  }

  #remember(id: string, kind: Visit['kind'], outcome: Outcome): void {
    const [step = '', number = ''] = id.split('#');
    const failure = outcome.kind === 'success' ? null : outcome.failure;
    const outputs = outcome.kind === 'success' ? outcome.outputs : outcome.failure.outputs;
    const { status } = outputs;
    const word = typeof status === 'string' ? status : 'completed';
    const became = failure === null ? word : (OUTCOME_OF[failure.kind] ?? 'error');
    const about = { id, step, visit: Number(number), kind, outcome: became };
    const visit: Visit = { ...about, failure, outputs, startedAt: 0, endedAt: 1 };
    const known = this.#visits.findIndex((each) => each.id === id);
    if (known === -1) this.#visits.push(visit);
    else this.#visits[known] = visit;
  }

  #next(step: string): number {
    const number = (this.#counts.get(step) ?? 0) + 1;
    this.#counts.set(step, number);
    return number;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of this.left()) process.kill(pid, 'SIGKILL');
    await this.repository[Symbol.asyncDispose]();
  }
}

export function prompt(text: string, inputs: PromptText['inputs'] = []): PromptText {
  return { id: 'task.test.v1', version: 1, path: 'prompts/task.test.v1.md', text, inputs };
}

/** A shell command line with which an agent answers. */
export function answering(answer: Json): string {
  const text = typeof answer === 'string' ? answer : JSON.stringify(answer);
  const escaped = JSON.stringify(text).slice(1, -1);
  return `result '${escaped.replaceAll("'", String.raw`'\''`)}'`;
}

export function plan(status: string, more: JsonMap = {}): JsonMap {
  return { status, next_step: null, fix_instructions: null, blockers: [], risk_flags: [], ...more };
}

export function failureOf(outcome: Outcome) {
  if (outcome.kind === 'success') throw new Error(`it succeeded: ${JSON.stringify(outcome)}`);
  return outcome.failure;
}

export function successOf(outcome: Outcome) {
  if (outcome.kind === 'failure') throw new Error(`it failed: ${JSON.stringify(outcome.failure)}`);
  return outcome;
}
