// Sends the trace of a run that has ended, if the configuration or the environment names a receiver: `RUN/exported.jsonl` says what
// was sent, in the form of notified.jsonl.
//
//   trace/1  A run that was resumed and has ended again is sent again, as a whole: its spans have the same ids.
//   trace/2  A run that was paused has not ended.

import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { tolerate, UNUSABLE } from '../../sys/errors.ts';
import { readSettings } from '../sources.ts';
import { type OtlpEndpoint, otlpEndpoint } from '../telemetry/endpoint.ts';
import { sendTo, shareableTrace } from '../telemetry/export-run.ts';
import { storeOf } from '../runs.ts';
import { Deliveries } from './deliveries.ts';
import { environmentOfSender } from './dispatcher.ts';
import type { SendTask, SentRun, TaskMaker } from './sender.ts';

const EXPORTED_FILE = 'exported.jsonl';
/** Ends of attempts wake it; this is for a clock that jumps. */
const IN_FLIGHT_LOOK_MS = 60_000;

export const traceTask: TaskMaker = (runFolder, wake) => new TraceTask(runFolder, wake);

class TraceTask implements SendTask {
  readonly #deliveries: Deliveries;
  readonly #wake: () => void;
  #endpoint: OtlpEndpoint | null = null;
  #stamp: string | null = null;
  #isSending = false;

  constructor(runFolder: string, wake: () => void) {
    this.#deliveries = new Deliveries(join(runFolder, EXPORTED_FILE));
    this.#wake = wake;
  }

  pass(run: SentRun, now: number): { readonly wakeAt: number } | null {
    const { state, records } = run;
    const last = records.at(-1);
    if (last === undefined || state.phase !== 'ended' || state.end === 'paused') return null;
    const endpoint = this.#endpointOf(run);
    if (endpoint === null) return null;
    if (this.#isSending) return { wakeAt: now + IN_FLIGHT_LOOK_MS };
    const id = `trace-${last.seq}`;
    const dueAt = this.#deliveries.dueAt(id, 'otlp', now);
    if (dueAt === null || dueAt > now) return dueAt === null ? null : { wakeAt: dueAt };
    void this.#send(run, endpoint, id);
    return { wakeAt: now + IN_FLIGHT_LOOK_MS };
  }

  async #send(run: SentRun, endpoint: OtlpEndpoint, id: string): Promise<void> {
    this.#isSending = true;
    const sent = await sendTo(endpoint, await shareableTrace(storeOf(run.project), run));
    this.#deliveries.note({ id, kind: 'trace' }, 'otlp', sent.ok ? null : sent.error, Date.now());
    this.#isSending = false;
    this.#wake();
  }

  /** The configuration may have changed. */
  #endpointOf({ project }: SentRun): OtlpEndpoint | null {
    const paths = [project.shared, project.meow].map((folder) => join(folder, 'config.toml'));
    const stamp = paths.map((path) => tolerate(UNUSABLE, null, () => statSync(path))?.mtimeMs ?? 0).join(' ');
    if (stamp === this.#stamp) return this.#endpoint;
    this.#stamp = stamp;
    const environment = environmentOfSender();
    exposeSettings(environment);
    const { config } = readSettings({ ...project, cwd: dirname(project.meow) });
    const endpoint = otlpEndpoint(config.telemetry, environment);
    this.#endpoint = endpoint.ok ? endpoint.value : null;
    return this.#endpoint;
  }
}

/** The exporters read their settings from the environment of this process, which may lack those of `~/.meow/env`. */
function exposeSettings(environment: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(environment)) if (name.startsWith('OTEL_')) process.env[name] = value;
}
