// The section [telemetry] of the configuration: where traces are sent.

import { readWebAddress } from '../base/web-address.ts';
import { TELEMETRY } from './config-keys.ts';
import { namesOf } from './keys.ts';
import { checkKeys, type Report } from './report.ts';
import { stringAt, tableAt } from './toml-fields.ts';
import type { TomlTable } from './toml-tree.ts';

export interface TelemetryConfig {
  /** Address of a collector (OTLP over HTTP), to which `/v1/traces` is added; null: nothing is sent. */
  readonly otlp: string | null;
}

export const DEFAULT_TELEMETRY: TelemetryConfig = { otlp: null };

const OTLP_HINT = 'For example otlp = "http://127.0.0.1:4318".';

export function readTelemetryConfig(report: Report, root: TomlTable, base: TelemetryConfig): TelemetryConfig {
  const table = tableAt(report, root, 'telemetry', `Write [telemetry] and below it the address. ${OTLP_HINT}`);
  if (table === null) return base;
  checkKeys(report, table, namesOf(TELEMETRY.keys), '[telemetry]', 'warning');
  const otlp = stringAt(report, table, 'otlp', OTLP_HINT);
  if (otlp === null) return base;
  const address = readWebAddress(otlp.value);
  if (address.ok) return { otlp: otlp.value };
  report.error('invalid-url', otlp.place, `"otlp" ${address.error}: ${JSON.stringify(otlp.value)}`, OTLP_HINT);
  return base;
}
