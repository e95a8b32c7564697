// Decisions about gates as a program of its own would send them: the message, and its proof by an HMAC.

import { createHmac, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

export interface Provable {
  readonly type: 'approval' | 'answer';
  readonly gate_id: string;
  readonly approved?: boolean;
  readonly notes?: string;
  readonly reason?: string;
  readonly text?: string;
  readonly by?: string;
  readonly id?: string;
}

export interface Proving {
  readonly run: string;
  readonly mark: string;
  readonly asking: number;
  readonly key: Uint8Array;
  readonly time?: string;
}

/** The message with its proof. */
export function proven(message: Provable, { run, mark, asking, key, time = '2026-11-15T15:27:33.494Z' }: Proving) {
  const verdict = message.type === 'answer' ? 'answered' : message.approved === true ? 'approved' : 'rejected';
  const text = message.text ?? message.notes ?? message.reason ?? '';
  const signed = JSON.stringify([run, mark, message.gate_id, asking, verdict, message.by ?? 'somebody', text, time]);
  const hmac = createHmac('sha256', key).update(signed).digest('hex');
  return { ...message, proof: { asking, time, hmac } };
}

/** The key in this file, made if it does not exist. */
export function decisionKey(path: string): Uint8Array {
  if (existsSync(path)) return readFileSync(path);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const key = randomBytes(32);
  writeFileSync(path, key, { mode: 0o600 });
  return key;
}
