// `[hooks]`: what the agent calls the things that its hooks tell of. How they are installed is up to `[[files]]` and the
// commands, which have `{{hook}}`.

import type { HookNames } from '../../ir/adapter.ts';
import type { Report } from '../report.ts';
import { checkKeys, tableAt } from '../toml-fields.ts';
import type { TomlString, TomlTable } from '../toml-tree.ts';
import { filledAt, textsAt } from './fields.ts';

const KEYS = [
  'begun',
  'accepted',
  'tool_begun',
  'tool_ended',
  'blocked',
  'stopped',
  'failed',
  'ended',
  'session_key',
  'prompt_key',
  'message_key',
];

export function readHooks(report: Report, root: TomlTable): HookNames | null {
  const table = tableAt(report, root, 'hooks', 'Write [hooks] and below it accepted = "NAME".');
  if (table === null) return null;
  checkKeys(report, table, KEYS, '[hooks]', 'warning');
  const text = (key: string): string | null => filledAt(report, table, key)?.value ?? null;
  const hook = (key: string): string | null => {
    const string = filledAt(report, table, key);
    return string === null ? null : hookName(report, string);
  };
  return {
    begun: hook('begun'),
    accepted: hook('accepted'),
    toolBegun: hook('tool_begun'),
    toolEnded: hook('tool_ended'),
    blocked: (textsAt(report, table, 'blocked') ?? []).flatMap((string) => hookName(report, string) ?? []),
    stopped: hook('stopped'),
    failed: hook('failed'),
    ended: hook('ended'),
    sessionKey: text('session_key') ?? 'session_id',
    promptKey: text('prompt_key'),
    messageKey: text('message_key'),
  };
}

/** It is an argument of {{hook}}, and becomes a part of the name of a file. */
function hookName(report: Report, { value, place }: TomlString): string | null {
  if (/^[A-Za-z0-9_-]+$/.test(value)) return value;
  const hint = 'It is made of letters, digits, "-" and "_": what the agent says behind {{hook}}.';
  report.error('invalid-name', place, `${JSON.stringify(value)} is no name of a hook`, hint);
  return null;
}
