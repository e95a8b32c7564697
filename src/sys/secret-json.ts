// Secrets in JSON values: masks and puts back every text in them, and the keys of maps.

import { isJsonMap, type Json } from '../base/json.ts';
import { SECRET_LENGTH_MIN } from './secret-forms.ts';
import type { Secrets } from './secrets.ts';

/** With the values of secrets. */
export function revealJson(value: Json, secrets: Pick<Secrets, 'reveal'>): Json {
  if (typeof value === 'string') return secrets.reveal(value);
  if (Array.isArray(value)) return value.map((item) => revealJson(item as Json, secrets));
  if (!isJsonMap(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [secrets.reveal(key), revealJson(item, secrets)]),
  );
}

/** With references; the same value if there is nothing to mask. A number that is a secret becomes a text. */
export function maskJson<T extends Json>(value: T, secrets: Pick<Secrets, 'mask'>): T {
  return maskedValue(value, secrets) as T;
}

function maskedValue(value: Json, secrets: Pick<Secrets, 'mask'>): Json {
  if (typeof value === 'string') return secrets.mask(value);
  if (typeof value === 'number') {
    const text = String(value);
    const masked = text.length < SECRET_LENGTH_MIN ? text : secrets.mask(text);
    return masked === text ? value : masked;
  }
  if (Array.isArray(value)) {
    const items = value.map((item) => maskedValue(item as Json, secrets));
    return items.every((item, at) => item === value[at]) ? value : items;
  }
  if (!isJsonMap(value)) return value;
  const entries = Object.entries(value).map(([key, item]) => [secrets.mask(key), maskedValue(item, secrets)] as const);
  const isSame = Object.entries(value).every(([key, item], at) => entries[at]?.[0] === key && entries[at][1] === item);
  return isSame ? value : Object.fromEntries(entries);
}

/** Outputs by their names, which stay. */
export function maskOutputs<T extends Readonly<Record<string, Json>>>(
  outputs: T,
  secrets: Pick<Secrets, 'mask'>,
  stored: readonly string[] = [],
): T {
  const entries = Object.entries(outputs).map(([name, value]) => {
    return [name, stored.includes(name) ? value : maskedValue(value, secrets)] as const;
  });
  return entries.every(([name, value]) => value === outputs[name]) ? outputs : (Object.fromEntries(entries) as T);
}
