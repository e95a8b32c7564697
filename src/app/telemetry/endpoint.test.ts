import { describe, expect, test } from 'vitest';
import { isTraced, otlpEndpoint } from './endpoint.ts';

const NONE = { otlp: null };
const CONFIGURED = { otlp: 'http://collector:4318/' };

describe('the receiver of traces', () => {
  test('is that of the configuration, with protobuf', () => {
    expect(otlpEndpoint(CONFIGURED, {})).toEqual({
      ok: true,
      value: { url: 'http://collector:4318/v1/traces', protocol: 'http/protobuf' },
    });
    expect(otlpEndpoint(NONE, {})).toEqual({ ok: true, value: null });
  });

  test('is that of the environment, if it names one', () => {
    const base = { OTEL_EXPORTER_OTLP_ENDPOINT: 'https://e:1/otlp', OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' };
    expect(otlpEndpoint(CONFIGURED, base)).toMatchObject({
      value: { url: 'https://e:1/otlp/v1/traces', protocol: 'http/json' },
    });
    const exact = {
      ...base,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://e:1/own',
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf',
    };
    expect(otlpEndpoint(NONE, exact)).toMatchObject({ value: { url: 'https://e:1/own', protocol: 'http/protobuf' } });
  });

  test('is none if the environment turns traces off', () => {
    for (const off of [{ OTEL_TRACES_EXPORTER: 'none' }, { OTEL_SDK_DISABLED: 'True' }])
      expect(isTraced(CONFIGURED, off)).toBe(false);
    expect(isTraced(CONFIGURED, { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' })).toBe(true);
  });

  test('is refused with a wrong address or protocol', () => {
    const wrong = (environment: Readonly<Record<string, string>>): string => {
      const endpoint = otlpEndpoint(NONE, environment);
      return endpoint.ok ? 'accepted' : endpoint.error;
    };
    expect(wrong({ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317' })).toContain('is not a URL');
    expect(wrong({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://169.254.169.254' })).toContain('link-local');
    const grpc = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:4317', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' };
    expect(wrong(grpc)).toContain('OTEL_EXPORTER_OTLP_PROTOCOL is "grpc"');
    expect(isTraced(NONE, grpc)).toBe(false);
  });
});
