// TOML's unquoted values: numbers, booleans, dates and times. Null where a word is none of them.

export type Scalar =
  | { readonly kind: 'integer' | 'float'; readonly value: number }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'moment'; readonly value: string };

const DECIMAL = /^[+-]?(0|[1-9](_?\d)*)$/;
const RADIX = /^0(x[0-9A-Fa-f](_?[0-9A-Fa-f])*|o[0-7](_?[0-7])*|b[01](_?[01])*)$/;
const FLOAT = /^[+-]?(0|[1-9](_?\d)*)(\.\d(_?\d)*)?([eE][+-]?\d(_?\d)*)?$/;
const DATE = /^(\d{4})-(\d\d)-(\d\d)/;
const MOMENT = /^(\d{4}-\d\d-\d\d)?([Tt ]?(\d\d):(\d\d)(:(\d\d)(\.\d+)?)?([Zz]|[+-](\d\d):(\d\d))?)?$/;

export function readScalar(word: string): Scalar | null {
  if (word === 'true' || word === 'false') return { kind: 'boolean', value: word === 'true' };
  if (DECIMAL.test(word) || RADIX.test(word)) {
    return { kind: 'integer', value: Number(word.replaceAll('_', '')) };
  }
  if (FLOAT.test(word)) return { kind: 'float', value: Number(word.replaceAll('_', '')) };
  if (/^[+-]?(inf|nan)$/.test(word)) {
    const size = word.endsWith('nan') ? Number.NaN : Number.POSITIVE_INFINITY;
    return { kind: 'float', value: word.startsWith('-') ? -size : size };
  }
  return isMoment(word) ? { kind: 'moment', value: word } : null;
}

function isMoment(word: string): boolean {
  const parts = MOMENT.exec(word);
  if (parts === null || word === '') return false;
  const [, date, time, hour, minute, , second, , zone, zoneHour, zoneMinute] = parts;
  if (date === undefined && (time === undefined || zone !== undefined || /^[Tt ]/.test(time))) return false;
  if (date !== undefined && time !== undefined && !/^[Tt ]/.test(time)) return false;
  const within = (digits: string | undefined, max: number): boolean => digits === undefined || Number(digits) <= max;
  if (
    !within(hour, 23) ||
    !within(minute, 59) ||
    !within(second, 60) ||
    !within(zoneHour, 23) ||
    !within(zoneMinute, 59)
  ) {
    return false;
  }
  return date === undefined || isDate(date);
}

function isDate(text: string): boolean {
  const [, year = '', month = '', day = ''] = DATE.exec(text) ?? [];
  const leap = Number(year) % 4 === 0 && (Number(year) % 100 !== 0 || Number(year) % 400 === 0);
  const days = [31, leap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][Number(month) - 1];
  return days !== undefined && Number(day) >= 1 && Number(day) <= days;
}
