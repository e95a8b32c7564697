// A receiver of traces (OTLP over HTTP) for tests: it decodes what exporters send, as protobuf and as JSON, into the same spans.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { ProtobufReader } from '@opentelemetry/otlp-transformer/build/src/common/protobuf/protobuf-reader.js';

export interface ReceivedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly { readonly name: string; readonly attributes: Readonly<Record<string, unknown>> }[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  /** 2: error. */
  readonly status: number;
  readonly message: string;
  readonly resource: Readonly<Record<string, unknown>>;
}

export interface ReceivedRequest {
  readonly path: string;
  readonly contentType: string;
  readonly headers: IncomingMessage['headers'];
  readonly at: number;
  readonly spans: readonly ReceivedSpan[];
  /** As it was sent, without compression. */
  readonly body: Uint8Array;
}

export class OtlpReceiver implements AsyncDisposable {
  readonly requests: ReceivedRequest[] = [];
  /** Answers of the next requests; then 200. */
  readonly answers: number[] = [];
  readonly #server: Server;

  static async start(): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver();
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  private constructor() {
    this.#server = createServer((request, response) => {
      void buffer(request).then((body) => {
        const status = this.answers.shift() ?? 200;
        const { url = '', headers } = request;
        const bytes = headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
        const contentType = headers['content-type'] ?? '';
        const spans = contentType === 'application/json' ? spansOfJson(bytes) : spansOfProtobuf(bytes);
        if (status === 200) this.requests.push({ path: url, contentType, headers, at: Date.now(), spans, body: bytes });
        response.writeHead(status, { 'content-type': contentType }).end(contentType === 'application/json' ? '{}' : '');
      });
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get spans(): readonly ReceivedSpan[] {
    return this.requests.flatMap(({ spans }) => spans);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

interface JsonSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly JsonAttribute[];
  readonly events: readonly { readonly name: string; readonly attributes: readonly JsonAttribute[] }[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly status: { readonly code?: number; readonly message?: string };
}

interface JsonAttribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface JsonRequest {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly JsonAttribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly JsonSpan[] }[];
  }[];
}

function spansOfJson(bytes: Uint8Array): ReceivedSpan[] {
  const { resourceSpans } = JSON.parse(Buffer.from(bytes).toString('utf8')) as JsonRequest;
  const attributesOf = (list: readonly JsonAttribute[]): Record<string, unknown> =>
    Object.fromEntries(list.map(({ key, value }) => [key, Object.values(value)[0]]));
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? '',
        name: span.name,
        kind: span.kind,
        startNs: BigInt(span.startTimeUnixNano),
        endNs: BigInt(span.endTimeUnixNano),
        attributes: attributesOf(span.attributes),
        events: span.events.map(({ name, attributes }) => ({ name, attributes: attributesOf(attributes) })),
        links: span.links.map(({ traceId, spanId }) => ({ traceId, spanId })),
        status: span.status.code ?? 0,
        message: span.status.message ?? '',
        resource: attributesOf(resource.attributes),
      })),
    ),
  );
}

/** Fields of a message by their numbers (opentelemetry-proto, trace/v1 and common/v1). */
type Fields = ReadonlyMap<number, readonly (Uint8Array | bigint | number)[]>;

const WIRE = { varint: 0, fixed64: 1, bytes: 2 };

function fieldsOf(bytes: Uint8Array): Fields {
  const reader = new ProtobufReader(bytes);
  const fields = new Map<number, (Uint8Array | bigint | number)[]>();
  while (!reader.isAtEnd()) {
    const { fieldNumber, wireType } = reader.readTag();
    const values = fields.get(fieldNumber) ?? [];
    fields.set(fieldNumber, values);
    if (wireType === WIRE.bytes) values.push(reader.readBytes());
    else if (wireType === WIRE.varint) values.push(reader.readVarint());
    else if (wireType === WIRE.fixed64) values.push(fixed64(bytes, reader));
    else reader.skip(wireType);
  }
  return fields;
}

/** The reader of the package only skips these. */
function fixed64(bytes: Uint8Array, reader: ProtobufReader): bigint {
  const value = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).readBigUInt64LE(reader.pos);
  reader.skip(WIRE.fixed64);
  return value;
}

function messages(fields: Fields, number: number): Fields[] {
  return (fields.get(number) ?? []).flatMap((value) => (value instanceof Uint8Array ? [fieldsOf(value)] : []));
}

function text(fields: Fields, number: number): string {
  const value = fields.get(number)?.[0];
  return value instanceof Uint8Array ? Buffer.from(value).toString('utf8') : '';
}

function hex(fields: Fields, number: number): string {
  const value = fields.get(number)?.[0];
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : '';
}

function numeric(fields: Fields, number: number): number {
  return Number(fields.get(number)?.[0] ?? 0);
}

function attributesIn(fields: Fields, number: number): Record<string, unknown> {
  return Object.fromEntries(
    messages(fields, number).map((pair) => {
      const value = messages(pair, 2)[0] ?? new Map();
      const double = value.get(4)?.[0];
      if (typeof double === 'bigint') {
        const bytes = Buffer.alloc(8);
        bytes.writeBigUInt64LE(double);
        return [text(pair, 1), bytes.readDoubleLE(0)];
      }
      return [text(pair, 1), value.has(3) ? numeric(value, 3) : text(value, 1)];
    }),
  );
}

function spansOfProtobuf(bytes: Uint8Array): ReceivedSpan[] {
  return messages(fieldsOf(bytes), 1).flatMap((resourceSpans) => {
    const resource = attributesIn(messages(resourceSpans, 1)[0] ?? new Map(), 1);
    return messages(resourceSpans, 2).flatMap((scopeSpans) =>
      messages(scopeSpans, 2).map((span) => {
        const status = messages(span, 15)[0] ?? new Map();
        return {
          traceId: hex(span, 1),
          spanId: hex(span, 2),
          parentSpanId: hex(span, 4),
          name: text(span, 5),
          kind: numeric(span, 6),
          startNs: span.get(7)?.[0] as bigint,
          endNs: span.get(8)?.[0] as bigint,
          attributes: attributesIn(span, 9),
          events: messages(span, 11).map((event) => ({ name: text(event, 2), attributes: attributesIn(event, 3) })),
          links: messages(span, 13).map((link) => ({ traceId: hex(link, 1), spanId: hex(link, 2) })),
          status: numeric(status, 3),
          message: text(status, 2),
          resource,
        };
      }),
    );
  });
}
