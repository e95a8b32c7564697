// Sends traces with the exporters of OpenTelemetry. A bundle of its own, because few runs need them. The exporters read headers,
// timeouts, compression and certificates from OTEL_EXPORTER_OTLP_… in the environment of this process.

import { type HrTime, SpanKind, SpanStatusCode, TraceFlags } from '@opentelemetry/api';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';

import { err, ok, type Result } from '../../base/errors.ts';
import type { Trace, TraceSpan } from '../../view/trace-spans.ts';
import type { OtlpEndpoint } from './endpoint.ts';

declare const MEOW_VERSION: string;

/** Spans of one request, so that large traces stay below the limits of receivers. */
const SPANS_MAX = 500;

/** An error is a part of a sentence. Never rejects. */
export async function sendTrace(trace: Trace, { url, protocol }: OtlpEndpoint): Promise<Result<void, string>> {
  const exporter = protocol === 'http/json' ? new JsonExporter({ url }) : new ProtobufExporter({ url });
  const spans = readableSpans(trace);
  try {
    for (let at = 0; at < spans.length; at += SPANS_MAX) {
      const problem = await send(exporter, spans.slice(at, at + SPANS_MAX));
      if (problem !== null) return err(problem);
    }
    return ok(undefined);
  } finally {
    await exporter.shutdown();
  }
}

/** `ExportResultCode.SUCCESS`, of a package that is only a part of the exporters. */
const ACCEPTED = 0;

/** Null if it was accepted. */
function send(exporter: JsonExporter | ProtobufExporter, spans: ReadableSpan[]): Promise<string | null> {
  return new Promise((resolve) => {
    exporter.export(spans, (result) => {
      const { code, error }: { readonly code: number; readonly error?: Error } = result;
      if (code === ACCEPTED) return resolve(null);
      const { message = 'unknown error', code: reason } = (error ?? {}) as { message?: string; code?: unknown };
      resolve(typeof reason === 'number' ? `the receiver answered ${reason}: ${message}` : message);
    });
  });
}

function readableSpans({ traceId, spans }: Trace): ReadableSpan[] {
  const resource = resourceFromAttributes({ 'service.name': 'meow', 'service.version': MEOW_VERSION });
  const contextOf = (spanId: string, trace = traceId) => ({ traceId: trace, spanId, traceFlags: TraceFlags.SAMPLED });
  return spans.map((span) => {
    const { spanId, parentId, name, from, to, attributes, events, links } = span;
    return {
      name,
      kind: kindOf(span),
      spanContext: () => contextOf(spanId),
      ...(parentId === null ? {} : { parentSpanContext: { ...contextOf(parentId), isRemote: false } }),
      startTime: timeOf(from),
      endTime: timeOf(to),
      duration: timeOf(to - from),
      status:
        span.error === null ? { code: SpanStatusCode.UNSET } : { code: SpanStatusCode.ERROR, message: span.error },
      attributes: { ...attributes },
      events: events.map(({ name: title, at, attributes: more }) => ({
        name: title,
        time: timeOf(at),
        attributes: { ...more },
      })),
      links: links.map(({ traceId: trace, spanId: linked }) => ({ context: contextOf(linked, trace) })),
      ended: true,
      resource,
      instrumentationScope: { name: 'meow', version: MEOW_VERSION },
      droppedAttributesCount: 0,
      droppedEventsCount: 0,
      droppedLinksCount: 0,
    };
  });
}

/** An agent is another program. */
function kindOf({ attributes }: TraceSpan): SpanKind {
  return 'gen_ai.operation.name' in attributes ? SpanKind.CLIENT : SpanKind.INTERNAL;
}

function timeOf(ms: number): HrTime {
  return [Math.floor(ms / 1_000), (ms % 1_000) * 1_000_000];
}
