// A notification as it is sent: the JSON that every channel gets, and what other services make of it.

import { createHash, createHmac } from 'node:crypto';

import { formatMoment } from '../../base/time.ts';
import type { WebhookFormat } from '../../languages/notify-config.ts';
import type { NoticeKind } from '../../view/notices.ts';

/** Its keys are a contract: all are always present, and unknown values are null. */
export interface Message {
  /** The same whenever it is sent again. */
  readonly id: string;
  readonly kind: NoticeKind | 'test';
  readonly run: string | null;
  /** Folder of the project. Absolute. */
  readonly project: string;
  readonly workflow: string | null;
  readonly step: string | null;
  readonly gate: string | null;
  readonly text: string;
  /** ISO 8601. */
  readonly since: string;
  readonly at: string;
  /** Decides or resumes; null if nothing has to be done. */
  readonly command: string | null;
  /** Of the page of the run; null if nothing serves it. */
  readonly url: string | null;
  /** How often the same was sent before while it waits. */
  readonly repeat: number;
}

export function messageId(...parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 24);
}

export function testMessage(project: string, at: number): Message {
  const moment = formatMoment(at);
  return {
    id: messageId('test', project, String(at)),
    kind: 'test',
    run: null,
    project,
    workflow: null,
    step: null,
    gate: null,
    text: 'a test of meow notify',
    since: moment,
    at: moment,
    command: null,
    url: null,
    repeat: 0,
  };
}

const VERBS: Readonly<Record<Message['kind'], string>> = {
  gate: 'waits for a decision',
  question: 'has a question',
  failed: 'failed',
  done: 'is done',
  paused: 'is paused',
  limit: 'has reached a usage limit',
  stuck: 'is stuck',
  test: 'sends a test',
};

export function titleOf({ kind, run, workflow, project }: Message): string {
  return `${run ?? workflow ?? project} ${VERBS[kind]}`;
}

export function plainText(message: Message): string {
  const { text, command } = message;
  return [text.slice(0, TEXT_MAX), ...(command === null ? [] : [command])].join('\n');
}

/** Services refuse longer texts. */
const TEXT_MAX = 1_500;

export interface WebhookRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** `secret`: signs the body; null: it is not signed. */
export function webhookRequest(message: Message, format: WebhookFormat, secret: string | null): WebhookRequest {
  const { body, headers } = FORMATS[format](message);
  const signature = secret === null ? null : createHmac('sha256', secret).update(body).digest('hex');
  return {
    body,
    headers: {
      ...headers,
      'user-agent': 'meow',
      'x-meow-delivery': message.id,
      ...(signature === null ? {} : { 'x-meow-signature': `sha256=${signature}` }),
    },
  };
}

const JSON_TYPE = { 'content-type': 'application/json' };

const FORMATS: Readonly<Record<WebhookFormat, (message: Message) => WebhookRequest>> = {
  json: (message) => ({ headers: JSON_TYPE, body: jsonOf(message) }),
  slack: (message) => ({ headers: JSON_TYPE, body: JSON.stringify({ text: withTitle(message) }) }),
  discord: (message) => ({ headers: JSON_TYPE, body: JSON.stringify({ content: withTitle(message) }) }),
  ntfy: (message) => ({
    headers: { 'content-type': 'text/plain; charset=utf-8', title: headerText(titleOf(message)) },
    body: plainText(message),
  }),
};

/** In the order of the reference. */
export function jsonOf(message: Message): string {
  const { id, kind, run, project, workflow, step, gate, text, since, at, command, url, repeat } = message;
  return JSON.stringify({ id, kind, run, project, workflow, step, gate, text, since, at, command, url, repeat });
}

function withTitle(message: Message): string {
  return `${titleOf(message)}\n${plainText(message)}`;
}

/** Headers have only ASCII; RFC 2047 says how to write the rest. */
function headerText(text: string): string {
  const plain = text.replaceAll(/\p{Cc}/gu, ' ');
  return /^[\x20-\x7e]*$/.test(plain) ? plain : `=?UTF-8?B?${Buffer.from(plain).toString('base64')}?=`;
}
