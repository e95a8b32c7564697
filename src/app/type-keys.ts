// Types keys of a person into the terminal of an agent: through the engine of the run, which has the only connection to its
// tmux; without an engine, through a connection of our own, which is closed when an engine takes the run.

import { join } from 'node:path';

import { err, ok, type Result, UsageError } from '../base/errors.ts';
import { TRANSCRIPT } from '../drivers/agent/terminal/agent.ts';
import { storedStart } from '../drivers/agent/files.ts';
import { typeKeys } from '../drivers/agent/terminal/typed-keys.ts';
import { socketPaths } from '../drivers/agent/tmux/setting.ts';
import { Tmux } from '../drivers/agent/tmux/tmux.ts';
import { markerOf } from '../drivers/environment.ts';
import { askSocket, newMessageId } from '../ipc/client.ts';
import { proveWithKey } from '../ipc/decision-proof.ts';
import { asksSomething, provenKeys } from '../ipc/typed-keys.ts';
import { ownEnvironment, type Project } from './project.ts';
import { engineAddress, type ReadRun, readRun, type Store, unlessRefused } from './runs.ts';
import { readSettings } from './sources.ts';

export interface TypedBy {
  readonly by: string;
  /** The person saw that the agent asks something, and means to answer it. */
  readonly intoDialog: boolean;
}

/** For an engine that is busy. */
const ANSWER_MS = 10_000;

export class AgentKeys {
  readonly #project: Project;
  readonly #store: Store;
  readonly #id: string;
  readonly #agent: string;
  #run: ReadRun | null = null;
  #tmux: Tmux | null = null;

  constructor(project: Project, store: Store, id: string, agent: string) {
    this.#project = project;
    this.#store = store;
    this.#id = id;
    this.#agent = agent;
  }

  /** An error is a sentence. */
  async type(keys: Uint8Array, typed: TypedBy): Promise<Result<null, string>> {
    try {
      if ((await this.#store.holder(this.#id)) === null) return await this.#typeHere(keys, typed);
      this.close();
      return await this.#typeThere(keys, typed);
    } catch (error) {
      if (error instanceof UsageError) return err(error.message);
      throw error;
    }
  }

  close(): void {
    this.#tmux?.close();
    this.#tmux = null;
  }

  /** Through the engine. */
  async #typeThere(bytes: Uint8Array, { by, intoDialog }: TypedBy): Promise<Result<null, string>> {
    this.#run ??= await readRun(this.#store, this.#id);
    const [agent, id, time] = [this.#agent, newMessageId(), new Date().toISOString()];
    const keys = Buffer.from(bytes).toString('base64');
    const hmac = proveWithKey(process.env, provenKeys(this.#run, { agent, keys, by, intoDialog, id }, time));
    const facts = { id, workflow: this.#id, agent, keys, by, into_dialog: intoDialog };
    const message = { type: 'type_keys', ...facts, proof: { asking: 0, time, hmac } };
    const answer = await askSocket(engineAddress(this.#store, this.#run), message, AbortSignal.timeout(ANSWER_MS));
    if (answer?.kind === 'ack') return ok(null);
    return err(answer?.kind === 'error' ? answer.message : `the engine of run ${this.#id} does not answer`);
  }

  async #typeHere(keys: Uint8Array, { by, intoDialog }: TypedBy): Promise<Result<null, string>> {
    const run = await readRun(this.#store, this.#id);
    this.#run = run;
    if (!intoDialog && asksSomething(run.state, this.#agent))
      return err(`agent ${this.#agent} asks something: choose Type again to answer it in the terminal`);
    const files = this.#store.files(this.#id);
    const start = await unlessRefused(storedStart(files, this.#agent), null);
    if (start?.channel !== 'terminal') return err(`agent ${this.#agent} has no terminal`);
    const place = { runId: this.#id, files, mark: run.state.request?.mark ?? '' };
    const isShared = readSettings(this.#project).config.tmux === 'shared';
    const socket = isShared ? null : socketPaths(place).socket;
    this.#tmux ??= new Tmux({ program: 'tmux', socket, environment: ownEnvironment() });
    const pane = await this.#tmux.find(markerOf(place, start.name));
    return typeKeys(pane, files.localPath(join(start.inRun)), keys, by);
  }
}

/** The transcript of an agent's terminal, relative to the run; null if it has none. */
export async function transcriptOf(store: Store, id: string, agent: string): Promise<string | null> {
  const start = await unlessRefused(storedStart(store.files(id), agent), null);
  return start?.channel === 'terminal' ? `${start.inRun}/${TRANSCRIPT}` : null;
}
