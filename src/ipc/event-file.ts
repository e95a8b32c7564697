// The message that `meow event` leaves in an inbox. It is written by a shell alone (bin/event.sh), which can neither quote
// JSON nor count bytes, but can write a NUL, which no argument contains. So the file contains the arguments as they were
// given, each with a NUL after it.
//
//   meow-event-1 · number of fields that follow · run · agent · TYPE · --data · k=v · …
//
// The shell writes the file in place. An incomplete file is recognized by the number of its fields.

import type { Result } from '../base/result.ts';
import { err, ok } from '../base/result.ts';
import type { EventMessage, Message } from './protocol.ts';
import { parseMessage } from './protocol.ts';

const MAGIC = 'meow-event-1';

/** Null if the file is incomplete. `id`: identifies the message. An error is a sentence. */
export function parseEventFile(text: string, id: string, runId: string): Result<EventMessage, string> | null {
  const [magic, announced, ...rest] = text.split('\0');
  if (rest.length === 0) return `${MAGIC}\0`.startsWith(text) || magic === MAGIC ? null : err('it is not an event');
  if (magic !== MAGIC || !/^[1-9]\d{0,5}$/.test(announced ?? '')) return err('it is not an event');
  // Nothing follows the last NUL.
  const fields = rest.slice(0, -1);
  if (fields.length < Number(announced)) return null;
  const [workflow = '', agent = '', type = '', ...args] = fields;
  const data = dataOf(args);
  if (fields.length > Number(announced) || data === null) return err('it is not an event');
  const line = JSON.stringify({ type: 'event', id, workflow, agent, event_type: type, data });
  const parsed: Result<Message, string> = parseMessage(line, runId);
  if (!parsed.ok) return parsed;
  return parsed.value.kind === 'event' ? ok(parsed.value) : err('it is not an event');
}

/** `--data k=v` and `--data=k=v`. */
function dataOf(args: readonly string[]): Readonly<Record<string, string>> | null {
  const entries: [string, string][] = [];
  for (let at = 0; at < args.length; at++) {
    const flag = args[at] ?? '';
    const pair = flag === '--data' ? args[++at] : flag.startsWith('--data=') ? flag.slice('--data='.length) : undefined;
    const equals = pair?.indexOf('=') ?? -1;
    if (pair === undefined || equals < 1) return null;
    entries.push([pair.slice(0, equals), pair.slice(equals + 1)]);
  }
  return Object.fromEntries(entries);
}
