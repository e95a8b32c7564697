// Writes TOML: tables of plain values, in the order given. Every value reads back as the same JSON.

import type { Json, JsonMap } from '../base/json.ts';

/** Null and values that contain null cannot be written. */
export function isTomlValue(value: Json): boolean {
  if (value === null) return false;
  if (Array.isArray(value)) return (value as readonly Json[]).every(isTomlValue);
  if (typeof value === 'object') return Object.values(value as JsonMap).every(isTomlValue);
  return typeof value !== 'number' || Number.isFinite(value);
}

/** On one line. */
function tomlValue(value: Json): string {
  if (typeof value === 'string') return tomlString(value);
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(tomlValue).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value as JsonMap).map(([key, item]) => `${tomlKey(key)} = ${tomlValue(item)}`);
    return entries.length === 0 ? '{}' : `{ ${entries.join(', ')} }`;
  }
  return String(value);
}

/** `[[test.command]]` or another head, and its keys. Keys without a value are left out. */
export function tomlTable(head: string, entries: Readonly<Record<string, Json | undefined>>): string {
  const lines = Object.entries(entries).flatMap(([key, value]) =>
    value === undefined ? [] : [`${tomlKey(key)} = ${tomlValue(value)}`],
  );
  return `${[head, ...lines].join('\n')}\n`;
}

function tomlKey(key: string): string {
  return /^[A-Za-z0-9_-]+$/.test(key) ? key : tomlString(key);
}

/** The escapes of JSON are those of TOML, which also forbids DEL. */
function tomlString(text: string): string {
  return JSON.stringify(text.replaceAll(/\p{Surrogate}/gu, '\ufffd')).replaceAll('\u007f', String.raw`\u007f`);
}
