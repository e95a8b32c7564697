// The trace of a run, as it may leave this machine, and its way to a receiver.

import { UsageError, type Result } from '../../base/errors.ts';
import type { TracedRun } from '../../base/trace-ids.ts';
import type { Store } from '../../engine/ports.ts';
import { traceOf, type Attributes, type Trace, type TracedRecords, tracedRun } from '../../view/trace-spans.ts';
import { ownEnvironment, type Project } from '../project.ts';
import { redactorOfRun } from '../redact.ts';
import { hasRun, readRun, resolveRun, storeOf, unlessRefused } from '../runs.ts';
import { readSettings } from '../sources.ts';
import { type OtlpEndpoint, otlpEndpoint } from './endpoint.ts';

export interface ExportedTrace {
  readonly run: string;
  readonly traceId: string;
  readonly spans: number;
  readonly url: string;
}

/** `meow export --otlp`. Any run, also one that goes on. Throws a UsageError if there is no receiver. */
export async function exportTrace(project: Project, wanted: string): Promise<Result<ExportedTrace, string>> {
  const endpoint = otlpEndpoint(readSettings(project).config.telemetry, ownEnvironment());
  const hint = 'set [telemetry] otlp in .meow/config.toml, or OTEL_EXPORTER_OTLP_ENDPOINT';
  if (!endpoint.ok) throw new UsageError(endpoint.error, hint);
  if (endpoint.value === null) throw new UsageError('no receiver of traces is configured', hint);
  const store = storeOf(project);
  const run = await readRun(store, await resolveRun(store, wanted));
  const trace = await shareableTrace(store, run);
  const sent = await sendTo(endpoint.value, trace);
  const { traceId, spans } = trace;
  return sent.ok ? { ok: true, value: { run: run.id, traceId, spans: spans.length, url: endpoint.value.url } } : sent;
}

/** Loads the exporters. An error is a part of a sentence. */
export async function sendTo(endpoint: OtlpEndpoint, trace: Trace): Promise<Result<void, string>> {
  const { sendTrace } = await import('./otlp-exporter.ts');
  return sendTrace(trace, endpoint);
}

/** Without secrets. */
export async function shareableTrace(store: Store, run: TracedRecords): Promise<Trace> {
  const redactor = redactorOfRun(store.files(run.id).localPath(''));
  const plain = (text: string): string => redactor.redact(text);
  const trace = traceOf(run, await originOf(store, run));
  const masked = (attributes: Attributes): Attributes =>
    Object.fromEntries(
      Object.entries(attributes).map(([name, value]) => [name, typeof value === 'string' ? plain(value) : value]),
    );
  return {
    ...trace,
    spans: trace.spans.map((span) => ({
      ...span,
      name: plain(span.name),
      error: span.error === null ? null : plain(span.error),
      attributes: masked(span.attributes),
      events: span.events.map((event) => ({ ...event, attributes: masked(event.attributes) })),
    })),
  };
}

/** The run that a fork comes from, if it still exists. */
async function originOf(store: Store, { state }: TracedRecords): Promise<TracedRun | null> {
  const from = state.fork?.from;
  if (from === undefined || !(await hasRun(store, from))) return null;
  const origin = await unlessRefused(readRun(store, from), null);
  return origin === null ? null : tracedRun(from, origin.state.request);
}
