// Where traces are sent: the variables OTEL_… of the environment, else [telemetry] of the configuration.

import { err, ok, type Result } from '../../base/errors.ts';
import { readWebAddress } from '../../base/web-address.ts';
import type { TelemetryConfig } from '../../languages/telemetry-config.ts';

export interface OtlpEndpoint {
  readonly url: string;
  readonly protocol: 'http/protobuf' | 'http/json';
}

type Variables = Readonly<Record<string, string>>;

/** Null if nothing is to be sent. An error is a sentence. */
export function otlpEndpoint(config: TelemetryConfig, environment: Variables): Result<OtlpEndpoint | null, string> {
  const read = (name: string): string | null => {
    const value = environment[name]?.trim() ?? '';
    return value === '' ? null : value;
  };
  const isOff = read('OTEL_SDK_DISABLED')?.toLowerCase() === 'true' || read('OTEL_TRACES_EXPORTER') === 'none';
  if (isOff) return ok(null);
  const exact = read('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT');
  const base = read('OTEL_EXPORTER_OTLP_ENDPOINT') ?? config.otlp;
  const url = exact ?? (base === null ? null : `${base.replace(/\/+$/, '')}/v1/traces`);
  if (url === null) return ok(null);
  const address = readWebAddress(url);
  if (!address.ok) return err(`the address of the OTLP receiver ${address.error}: ${JSON.stringify(url)}`);
  const wanted = read('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL') ?? read('OTEL_EXPORTER_OTLP_PROTOCOL');
  const protocol = wanted ?? 'http/protobuf';
  if (protocol === 'http/protobuf' || protocol === 'http/json') return ok({ url, protocol });
  return err(
    `OTEL_EXPORTER_OTLP_PROTOCOL is ${JSON.stringify(protocol)}: traces are sent as http/protobuf or http/json`,
  );
}

/** Whether traces are sent. `meow export --otlp` reports a wrong address. */
export function isTraced(config: TelemetryConfig, environment: Variables): boolean {
  const endpoint = otlpEndpoint(config, environment);
  return endpoint.ok && endpoint.value !== null;
}
