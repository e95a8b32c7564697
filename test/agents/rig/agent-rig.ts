// A project with real agents: the built `meow`, run in a prepared home against a scripted model. The script decides
// everything that agents do, and its log has everything that reached them.
//
//   await using stage = await AgentRig.setup(onPrompts({ 'Plan it.': report('steps=3') }));
// stage.workflow(spawnStep('start', 'claude'), agentStep('plan', 'claude', 'Plan it.', …), …); await
// stage.done(stage.run());

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { isAlive, Live, MEOW, type Result, Rig, type RunObject, until } from '../../rig/rig.ts';
import { ModelServer, type Script } from './model-server.ts';
import type { ModelRequest } from './model-talk.ts';
import { furnish } from './real-agents.ts';

/** The id of the only run. */
export const RUN = 'r';

const WORKFLOW = 'w.meow.toml';
const START = ['run', WORKFLOW, '--id', RUN];
const KILL_WHEN = join(import.meta.dirname, 'kill-when.cjs');

export interface Surroundings {
  /** False: the folder is new to the agents, and they ask about it. */
  readonly isTrusted?: boolean;
  /** Claude Code is logged in to a subscription, which has limits, and has no key. */
  readonly isSubscribed?: boolean;
}

export class AgentRig implements AsyncDisposable {
  readonly rig: Rig;
  readonly model: ModelServer;
  readonly environment: Readonly<Record<string, string>>;

  static async setup(script: Script, { isTrusted = true, isSubscribed = false }: Surroundings = {}): Promise<AgentRig> {
    const model = await ModelServer.start(script);
    const rig = await Rig.setup();
    const furnished = furnish(rig.home, { model, trusted: isTrusted ? [rig.folder] : [] });
    const { ANTHROPIC_API_KEY: key = '', ...without } = furnished;
    const login = isSubscribed ? { CLAUDE_CODE_OAUTH_TOKEN: key } : { ANTHROPIC_API_KEY: key };
    return new AgentRig(rig, model, { ...rig.environment, ...without, ...login });
  }

  private constructor(rig: Rig, model: ModelServer, environment: Readonly<Record<string, string>>) {
    this.rig = rig;
    this.model = model;
    this.environment = environment;
  }

  workflow(...steps: readonly string[]): void {
    this.rig.write(WORKFLOW, `[main]\n${steps.join('\n')}`);
  }

  run(...flags: readonly string[]): Live {
    return this.#start(...START, ...flags);
  }

  /** A run whose engine is killed with -9 at a moment of kill-when.cjs. */
  runKilled(moment: string): Live {
    const killer = { NODE_OPTIONS: `--require ${KILL_WHEN}`, KILL_WHEN: moment };
    return new Live(MEOW, START, this.rig.folder, { ...this.environment, ...killer });
  }

  resume(): Live {
    return this.#start('resume', RUN);
  }

  meow(...args: readonly string[]): Promise<Result> {
    return this.#start(...args).ended;
  }

  /** Waits for its end, which must be a success. */
  async done(live: Live): Promise<RunView> {
    const { stdout, stderr, code } = await live.ended;
    if (code !== 0) throw new Error(`it ended with ${code}:\n${stdout}${stderr}${await this.scene()}`);
    return this.status();
  }

  async status(): Promise<RunView> {
    return (await this.rig.status(RUN)) as RunView;
  }

  /** Kills only the engine, like a crash. */
  async crash(live: Live): Promise<void> {
    process.kill(this.rig.enginePid(RUN), 'SIGKILL');
    await live.ended;
  }

  /** Waits for a decision in the journal: `step-started work`. */
  decided(decision: string): Promise<void> {
    return this.rig.decided(RUN, decision);
  }

  decisions(decision: string): readonly string[] {
    return this.rig.decisions(RUN).filter((each) => each === decision);
  }

  /** The gate of a dialog of the step's agent. */
  async gate(step: string): Promise<Gate> {
    await this.decided(`gate-asked ${step}`);
    const open = JSON.parse((await this.meow('gates', '--json')).stdout) as readonly Gate[];
    const found = open.find((gate) => gate.step === step);
    if (found === undefined) throw new Error(`no gate of ${step} is open:\n${JSON.stringify(open)}`);
    return found;
  }

  /** The terminal of a started agent, as a person finds it. */
  async terminal(agent: string): Promise<AgentTerminal> {
    const { stdout, stderr } = await this.meow('attach', RUN, agent, '--print');
    const [, socket, session] = /^tmux -S '?([^\s']+)'? attach-session -t '?([^\s']+)'?\n$/.exec(stdout) ?? [];
    if (socket === undefined || session === undefined) throw new Error(`no terminal: ${stdout}${stderr}`);
    return new AgentTerminal(socket, session, this.environment);
  }

  /** Waits until an agent's hook of that name has been called and has answered. */
  async hooked(agent: string, hook: string): Promise<void> {
    await this.#fileIn(`agents/${agent}`, `-${hook}.json`);
    await until(() => !this.#living().some((pid) => toldBy(pid, 'cmdline').includes('hook.sh')), 'its answer');
  }

  /** Waits until there is a request to the run that no engine has answered. */
  async questionWaits(): Promise<void> {
    await this.#fileIn('inbox', '.ask');
  }

  /** The processes that run an agent's program. */
  processesOf(program: string): readonly number[] {
    return this.#living().filter((pid) => programOf(pid).startsWith(program));
  }

  /** How often a prompt has reached the model, counted in the last request of each session. */
  timesPrompted(text: string): number {
    const sessions = new Map(this.model.turns.map((turn) => [turn.session, turn]));
    return [...sessions.values()].reduce((sum, turn) => sum + prompts(turn, text), 0);
  }

  /** No process is left, not even a tmux server. */
  async leftNothing(): Promise<void> {
    await until(() => this.#living().length === 0, 'all processes to be gone');
  }

  /** Like a power failure. */
  async killAll(): Promise<void> {
    await until(() => {
      const living = this.#living();
      for (const pid of living) endProcess(pid);
      return living.length === 0;
    }, 'all processes to end');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.killAll();
    await this.rig[Symbol.asyncDispose]();
    await this.model[Symbol.asyncDispose]();
  }

  /** All processes with this home: a tmux server has little else in its environment. */
  #living(): readonly number[] {
    const home = `HOME=${this.rig.home}`;
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => toldBy(pid, 'environ').split('\0').includes(home) && isAlive(pid));
  }

  /** Diagnostic information for a failed test. */
  async scene(): Promise<string> {
    const asked = this.model.turns.map(({ provider, last }) => `${provider} was asked: ${last}\n`);
    const { agents } = await this.status();
    const screens = agents.map(async ({ id, terminal }) =>
      terminal === null ? '' : (await this.terminal(id)).scene(),
    );
    const { stdout } = await this.meow('trace', RUN);
    return [...asked, stdout, ...(await Promise.all(screens))].join('\n');
  }

  /** Files come and go there. */
  async #fileIn(folder: string, ending: string): Promise<void> {
    const path = this.rig.path(`.meow/workflows/${RUN}/${folder}`);
    const names = (): readonly string[] => readdirSync(path, { recursive: true, encoding: 'utf8' });
    await until(() => existsSync(path) && names().some((name) => name.endsWith(ending)), `*${ending} in ${folder}`);
  }

  #start(...args: readonly string[]): Live {
    return new Live(MEOW, args, this.rig.folder, this.environment);
  }
}

class AgentTerminal {
  readonly #socket: string;
  readonly #session: string;
  readonly #environment: Readonly<Record<string, string>>;

  constructor(socket: string, session: string, environment: Readonly<Record<string, string>>) {
    this.#socket = socket;
    this.#session = session;
    this.#environment = environment;
  }

  /** A line, and Enter once it is visible: an agent treats fast input as a paste. */
  async type(line: string): Promise<void> {
    this.press('-l', line);
    await this.shows(line);
    this.press('Enter');
  }

  press(...keys: readonly string[]): void {
    this.#tmux('send-keys', '-t', `${this.#session}:`, ...keys);
  }

  screen(): string {
    return this.#tmux('capture-pane', '-p', '-t', `${this.#session}:`).replaceAll(/ +$/gm, '');
  }

  async shows(text: string): Promise<void> {
    await until(() => this.screen().includes(text), `${text} in the terminal`);
  }

  /** Its screen, without blank lines; or that it is gone. */
  scene(): string {
    try {
      return this.screen().replaceAll(/\n{3,}/g, '\n…\n');
    } catch (error) {
      return `${this.#session} is gone: ${String(error)}`;
    }
  }

  kill(): void {
    this.#tmux('kill-session', '-t', this.#session);
  }

  #tmux(...args: readonly string[]): string {
    return execFileSync('tmux', ['-u', '-S', this.#socket, ...args], { env: this.#environment, encoding: 'utf8' });
  }
}

export interface Gate {
  readonly id: string;
  readonly step: string;
  readonly prompt: string;
}

/** Agent fields of `meow status --json`. */
export interface RunView extends RunObject {
  readonly steps: Readonly<Record<string, StepView>>;
  readonly agents: readonly {
    readonly id: string;
    readonly status: string;
    readonly session: string | null;
    readonly terminal: string | null;
  }[];
  readonly cost: { readonly usd: number | null; readonly tokens: number | null; readonly unknown_turns: number };
}

type StepView = RunObject['steps'][string] & {
  readonly delivery: string | null;
  readonly error: { readonly type: string; readonly message: string } | null;
};

/** A hook's output to an agent may quote the prompt. */
function prompts({ conversation }: ModelRequest, text: string): number {
  return conversation
    .filter((said) => said.by === 'user' && !/^(Stop hook feedback:|<hook_prompt )/.test(said.text))
    .reduce((sum, said) => sum + said.text.split(text).length - 1, 0);
}

/** The name of its executable, whatever it calls itself; empty if it is gone. */
function programOf(pid: number): string {
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`));
  } catch {
    return '';
  }
}

/** Empty if it is gone, or belongs to somebody else. */
function toldBy(pid: number, file: 'cmdline' | 'environ'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has exited by itself.
  }
}
