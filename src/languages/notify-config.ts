// The section [notify] of the configuration: what people are told of, and how.

import { readWebAddress } from '../base/web-address.ts';
import { NOTICE_KINDS, NOTIFY, WEBHOOK, WEBHOOK_FORMATS, type NoticeKind, type WebhookFormat } from './config-keys.ts';
import { namesOf } from './keys.ts';
import { checkKeys, missing, type Report } from './report.ts';
import { booleanAt, durationAt, filledStringAt, listAt, stringAt, tableAt, word, wordAt } from './toml-fields.ts';
import type { TomlString, TomlTable } from './toml-tree.ts';

export type { NoticeKind, WebhookFormat } from './config-keys.ts';

export interface NotifyConfig {
  readonly on: readonly NoticeKind[];
  /** For `sh -c`; null: none. */
  readonly command: string | null;
  readonly webhook: WebhookConfig | null;
  readonly desktop: boolean;
  readonly bell: boolean;
  /** So long a person may decide before anybody is told. */
  readonly afterMs: number;
  /** Null: once. */
  readonly repeatMs: number | null;
}

/** Whether messages are sent; the bell is rung by the run itself. */
export function sendsNotices({ webhook, command, desktop }: NotifyConfig): boolean {
  return webhook !== null || command !== null || desktop;
}

export interface WebhookConfig {
  /** An address, or `$NAME` of an environment variable that contains it. */
  readonly url: string;
  readonly format: WebhookFormat;
  /** `$NAME` of an environment variable; null: messages are not signed. */
  readonly secret: string | null;
}

export const DEFAULT_NOTIFY: NotifyConfig = {
  on: NOTICE_KINDS.filter((kind) => kind !== 'done' && kind !== 'limit'),
  command: null,
  webhook: null,
  desktop: false,
  bell: false,
  afterMs: 0,
  repeatMs: null,
};

export function readNotifyConfig(report: Report, root: TomlTable, base: NotifyConfig): NotifyConfig {
  const table = tableAt(report, root, 'notify', 'Write [notify] and below it desktop = true.');
  if (table === null) return base;
  checkKeys(report, table, namesOf(NOTIFY.keys), '[notify]', 'warning');
  const repeatMs = durationAt(report, table, 'repeat');
  return {
    on: kindsAt(report, table) ?? base.on,
    command: filledStringAt(report, table, 'command', 'Write a command, or leave it out.') ?? base.command,
    webhook: webhookAt(report, table) ?? base.webhook,
    desktop: booleanAt(report, table, 'desktop') ?? base.desktop,
    bell: booleanAt(report, table, 'bell') ?? base.bell,
    afterMs: durationAt(report, table, 'after') ?? base.afterMs,
    repeatMs: repeatMs === 0 ? null : (repeatMs ?? base.repeatMs),
  };
}

function kindsAt(report: Report, table: TomlTable): readonly NoticeKind[] | null {
  const list = listAt(report, table, 'on', 'For example on = ["gate", "failed"].');
  if (list === null) return null;
  return list.items.flatMap((item) => {
    if (item.kind !== 'string') {
      report.error('wrong-type', item.place, '"on" must be a list of words', 'For example on = ["gate", "failed"].');
      return [];
    }
    const kind = word(report, 'kind of notification', item, NOTICE_KINDS);
    return kind === null ? [] : [kind];
  });
}

const URL_HINT = 'For example webhook = "https://example.com/hook", or "$NAME" of an environment variable.';
const SECRET_HINT = 'Name an environment variable with the secret: secret = "$HOOK_SECRET".';

function webhookAt(report: Report, table: TomlTable): WebhookConfig | null {
  const entry = table.entries.get('webhook');
  if (entry === undefined) return null;
  if (entry.value.kind !== 'table') {
    const url = stringAt(report, table, 'webhook', URL_HINT);
    return url === null || !isAddress(report, 'webhook', url) ? null : { url: url.value, format: 'json', secret: null };
  }
  const inner = entry.value;
  checkKeys(report, inner, namesOf(WEBHOOK.keys), 'webhook', 'warning');
  const url = stringAt(report, inner, 'url', URL_HINT);
  if (!inner.entries.has('url')) missing(report, inner.place, 'webhook', 'url', URL_HINT);
  const secret = stringAt(report, inner, 'secret', SECRET_HINT);
  if (secret !== null && !VARIABLE.test(secret.value))
    report.error('invalid-value', secret.place, '"secret" must name an environment variable', SECRET_HINT);
  const format = wordAt(report, inner, 'format', WEBHOOK_FORMATS) ?? 'json';
  if (url === null || !isAddress(report, 'url', url)) return null;
  return { url: url.value, format, secret: secret?.value ?? null };
}

/** `$NAME` */
const VARIABLE = /^\$[A-Za-z_][A-Za-z0-9_]*$/;

function isAddress(report: Report, key: string, { value, place }: TomlString): boolean {
  if (VARIABLE.test(value)) return true;
  const address = readWebAddress(value);
  if (address.ok) return true;
  report.error('invalid-url', place, `"${key}" ${address.error}: ${JSON.stringify(value)}`, URL_HINT);
  return false;
}
