// Ids of W3C Trace Context for runs, steps and attempts. They derive from the run, so the engine computes the same ids for
// the environment of a command as an exporter does after the run. Pure.

/** What a `traceparent` names: `00-TRACE-SPAN-FLAGS`. */
export interface TraceParent {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
}

/** Null if the text is not a valid one. Later versions may have more fields. */
export function readTraceparent(text: string): TraceParent | null {
  const [, version = '', traceId = '', spanId = '', more = ''] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?$/.exec(text.trim()) ?? [];
  const isValid = version !== '' && version !== 'ff' && (version !== '00' || more === '');
  return isValid && !/^0+$/.test(traceId) && !/^0+$/.test(spanId) ? { traceId, spanId } : null;
}

/** A run, as far as its ids depend on it. */
export interface TracedRun {
  readonly id: string;
  /** Distinguishes it from other runs with the same id. */
  readonly mark: string;
  /** Of the program that started the run. */
  readonly traceparent?: string | null;
}

export function traceIdOf(run: TracedRun): string {
  const parent = readTraceparent(run.traceparent ?? '');
  return parent?.traceId ?? digest(`trace\n${run.id}\n${run.mark}`);
}

export function runSpanId(run: TracedRun): string {
  return spanId(run, 'run');
}

export function stepSpanId(run: TracedRun, step: string): string {
  return spanId(run, `step\n${step}`);
}

export function attemptSpanId(run: TracedRun, step: string, attempt: number): string {
  return spanId(run, `attempt\n${step}\n${attempt}`);
}

export function agentSpanId(run: TracedRun, step: string, attempt: number): string {
  return spanId(run, `agent\n${step}\n${attempt}`);
}

/** For the environment of an attempt: what it starts becomes a part of the trace. */
export function traceparentOf(run: TracedRun, step: string, attempt: number): string {
  return `00-${traceIdOf(run)}-${attemptSpanId(run, step, attempt)}-01`;
}

function spanId({ id, mark }: TracedRun, key: string): string {
  return digest(`span\n${id}\n${mark}\n${key}`).slice(0, 16);
}

const SEEDS = [1_779_033_703, 3_144_134_277, 1_013_904_242, 2_773_480_762];
const FACTORS = [597_399_067, 2_869_860_233, 951_274_213, 2_716_044_179];

/** 128 bits as 32 hexadecimal digits, none of whose halves is zero. Not for secrets. */
function digest(text: string): string {
  const lanes = [...SEEDS];
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    for (let lane = 0; lane < 4; lane += 1) {
      const next = lanes[(lane + 1) % 4] ?? 0;
      lanes[lane] = next ^ Math.imul((lanes[lane] ?? 0) ^ unit, FACTORS[lane] ?? 1);
    }
  }
  // Several rounds, so that each unit reaches all lanes.
  for (let round = 0; round < 8; round += 1) {
    const lane = round % 4;
    let mixed = (lanes[lane] ?? 0) ^ (lanes[(lane + 3) % 4] ?? 0);
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85eb_ca6b);
    mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2_ae35);
    lanes[lane] = mixed ^ (mixed >>> 16);
  }
  const hex = lanes.map((lane) => (lane >>> 0).toString(16).padStart(8, '0')).join('');
  // An id of zeros is invalid.
  return hex.replace(/^0{16}/, '0000000000000001').replace(/0{16}$/, '0000000000000001');
}
