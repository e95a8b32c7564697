// Calls of hooks: POST /hooks/NAME starts a run.
//
//   call/1  Nothing starts unless the caller has signed the raw body with the secret of the hook.
//   call/2  The id of the run follows from the id of the delivery. So a call that is repeated, even after a crash, starts nothing
//           again and is answered with the same run.
//   call/3  Neither Host, Origin nor cookies count: a browser cannot sign.

import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';

import type { Rate, Schedule } from '../../languages/schedule.ts';
import { hasRun, storeOf } from '../runs.ts';
import type { ScheduleFile } from './schedule-files.ts';
import { startRun } from './start-run.ts';

const BODY_BYTES_MAX = 1024 * 1024;
const BODY_TIMEOUT_MS = 30_000;

export interface HooksOptions {
  readonly environment: Readonly<Record<string, string>>;
  schedules(): readonly ScheduleFile[];
  note(line: string): void;
}

type Hook = Extract<Schedule['when'], { kind: 'hook' }>;

export class Hooks {
  readonly #options: HooksOptions;
  /** Times of the calls that were accepted, by the file of the hook. */
  readonly #accepted = new Map<string, number[]>();

  constructor(options: HooksOptions) {
    this.#options = options;
  }

  /** `name`: behind `/hooks/`. */
  async handle(name: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const answer = await this.#answer(name, request);
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers });
    response.end(`${JSON.stringify(answer.body)}\n`);
    // What it still sends is not read.
    if (!request.complete) request.destroy();
  }

  async #answer(name: string, request: IncomingMessage): Promise<HookAnswer> {
    const found = hookNamed(this.#options.schedules(), name);
    if (found === null) return refusal(404, `there is no hook ${JSON.stringify(name)}`);
    if (request.method !== 'POST') return refusal(405, 'call a hook with POST', { allow: 'POST' });
    const body = await readBody(request);
    if (body === null) return refusal(413, 'the body is longer than 1 MiB', { connection: 'close' });
    const { file, hook } = found;
    const secret = secretOf(hook.secret, this.#options.environment);
    if (secret === null) this.#options.note(`hook ${name}: ${hook.secret} is not set: every call is refused`);
    if (secret === null || !isSigned(request, body, secret)) return refusal(401, 'the signature is missing or wrong');
    const delivery = headerOf(request, 'x-meow-delivery') ?? headerOf(request, 'x-github-delivery');
    const run = runOfDelivery(file.name, delivery ?? createHash('sha256').update(body).digest('hex'));
    return this.#start(found, run, body);
  }

  async #start({ file, hook }: FoundHook, run: string, body: Buffer): Promise<HookAnswer> {
    const { name, project, schedule } = file;
    if (schedule === null) return refusal(404, 'the schedule of the hook has errors');
    if (await hasRun(storeOf(project), run)) return { status: 200, body: { run, duplicate: true } };
    const times = this.#recent(file, hook.rate);
    const waitMs = times.length < hook.rate.count ? 0 : (times[0] ?? 0) + hook.rate.perMs - Date.now();
    if (waitMs > 0) {
      const seconds = String(Math.ceil(waitMs / 1_000));
      return refusal(429, `this hook takes ${hook.rate.count} calls in ${hook.rate.perMs / 1_000} s`, {
        'retry-after': seconds,
      });
    }
    times.push(Date.now());
    const meta = { schedule: name, hook: hook.hook };
    const answer = await startRun({
      project,
      schedule,
      id: run,
      meta,
      body: { name: hook.body, text: body.toString('utf8') },
      environment: this.#options.environment,
    });
    if (answer.kind === 'started') {
      this.#options.note(`hook ${hook.hook}: started run ${run}`);
      return { status: 202, body: { run } };
    }
    times.pop();
    if (answer.kind === 'exists') return { status: 200, body: { run, duplicate: true } };
    this.#options.note(`hook ${hook.hook}: ${answer.why}`);
    return refusal(500, 'the run cannot be started; meow serve has printed why');
  }

  #recent({ name, project }: ScheduleFile, { perMs }: Rate): number[] {
    const key = `${project.meow}\n${name}`;
    const recent = (this.#accepted.get(key) ?? []).filter((at) => at > Date.now() - perMs);
    this.#accepted.set(key, recent);
    return recent;
  }
}

interface HookAnswer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

interface FoundHook {
  readonly file: ScheduleFile;
  readonly hook: Hook;
}

function refusal(status: number, error: string, headers: Readonly<Record<string, string>> = {}): HookAnswer {
  return { status, body: { error }, headers };
}

/** The first that has the name. */
function hookNamed(files: readonly ScheduleFile[], name: string): FoundHook | null {
  for (const file of files) {
    const when = file.schedule?.when;
    if (when?.kind === 'hook' && when.hook === name && file.schedule?.paused === false) return { file, hook: when };
  }
  return null;
}

function runOfDelivery(schedule: string, delivery: string): string {
  return `${schedule}-${createHash('sha256').update(delivery).digest('hex').slice(0, 16)}`;
}

/** `$NAME` stands for an environment variable. Null if that is not set. */
export function secretOf(written: string, environment: Readonly<Record<string, string>>): string | null {
  const value = written.startsWith('$') ? environment[written.slice(1)] : written;
  return value === undefined || value === '' ? null : value;
}

function isSigned(request: IncomingMessage, body: Buffer, secret: string): boolean {
  const given = headerOf(request, 'x-meow-signature') ?? headerOf(request, 'x-hub-signature-256') ?? '';
  const expected = Buffer.from(signatureOf(body, secret));
  const actual = Buffer.from(given);
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}

/** `sha256=` and the HMAC of the raw bytes. */
function signatureOf(body: string | Uint8Array, secret: string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}

function headerOf(request: IncomingMessage, name: string): string | null {
  const value = request.headers[name];
  return typeof value === 'string' && value !== '' ? value : null;
}

/** Null if it is too long. Rejects if the caller goes away. */
function readBody(request: IncomingMessage): Promise<Buffer | null> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let length = 0;
    request.setTimeout(BODY_TIMEOUT_MS, () => request.destroy());
    request.on('data', (piece: Buffer) => {
      length += piece.length;
      if (length <= BODY_BYTES_MAX) pieces.push(piece);
      else resolve(null);
    });
    request.on('end', () => resolve(Buffer.concat(pieces)));
    request.on('error', reject);
    request.on('close', () => reject(new Error('the caller has closed the connection')));
  });
}
