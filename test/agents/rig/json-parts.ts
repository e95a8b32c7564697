// Reading parts of JSON: a value of an unexpected kind counts as missing.

import { isJsonMap, type Json, type JsonMap } from '../../../src/base/json.ts';

export function mapAt(map: JsonMap, key: string): JsonMap {
  const value = map[key];
  return isJsonMap(value) ? value : {};
}

export function textAt(map: JsonMap, key: string): string {
  const value = map[key];
  return typeof value === 'string' ? value : '';
}

/** The maps of a list. */
export function mapsAt(map: JsonMap, key: string): readonly JsonMap[] {
  const value = map[key];
  return Array.isArray(value) ? (value as readonly Json[]).filter(isJsonMap) : [];
}
