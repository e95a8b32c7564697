// Finds secrets in texts and masks them. A process that knows their values (`Secrets`) can put them back.
//
// secrets/1  What is masked contains no value and no form of one (sys/secret-forms.ts), and no secret of a known kind.
// secrets/2  `reveal` of what `Secrets.mask` returns is the text, except for secrets of known kinds, which stay masked.
// secrets/3  Text that is cut at its start, or comes in pieces, shows no part of a secret that the cut goes through.

import { isJsonMap, type Json } from '../base/json.ts';
import { KIND_LENGTH_MAX, mayBeginSecret, secretsByKind } from '../base/secret-kinds.ts';
import { hasReference, revealReferences, secretReference, withoutReferences } from '../base/secret-reference.ts';
import { type FoundForm, formsOf, FormSearch, hashOf, type SearchedForm, SECRET_LENGTH_MIN } from './secret-forms.ts';

/** Masks secrets in texts that are shown, sent or recorded. */
export interface Redactor {
  /** With `•••NAME` or `•••KIND` in the place of each secret. */
  redact(text: string): string;
  /** The place at or after `from` at which a text can be cut, so that its end begins with no part of a secret. */
  wholeFrom(text: string, from: number): number;
  /** The same for bytes, of whatever encoding. */
  redactBytes(bytes: Uint8Array): Buffer;
  /** For bytes that come in pieces. */
  stream(): RedactingStream;
}

export interface RedactingStream {
  /** All that can be shown so far; the rest waits for what follows it. */
  push(bytes: Uint8Array): Buffer;
  end(): Buffer;
}

export class Secrets implements Redactor {
  readonly #values: ReadonlyMap<string, string>;
  /** Forms that have been asked for, by name. */
  readonly #forms = new Map<string, ReadonlyMap<string, string>>();
  readonly #label: (label: string) => string;
  readonly #inText: SecretMasks;
  #inBytes: SecretMasks | null = null;
  /** Whether a text had secrets or references. */
  used = false;
  /** Called with the label of each secret that is known only by its kind. */
  onKind: (label: string) => void = () => {};

  /** `hidden`: names whose values are not searched for. */
  constructor(values: ReadonlyMap<string, string>, hidden: ReadonlySet<string> = new Set()) {
    this.#values = values;
    for (const [name, value] of values) if (!hidden.has(name)) this.#forms.set(name, formsOf(value));
    this.#label = (label) => {
      const shown = values.has(label) ? `${label}_KIND` : label;
      this.onKind(shown);
      return shown;
    };
    this.#inText = masksOf(this.#forms, asIs, this.#label);
  }

  /** With references, for records. */
  mask(text: string): string {
    const masked = this.#inText.replace(text, withoutReferences);
    this.used ||= masked !== text && hasReference(masked);
    return masked;
  }

  reveal(text: string): string {
    return revealReferences(text, (name, form) => {
      const value = this.#values.get(name);
      this.used ||= value !== undefined;
      if (value === undefined || form === '') return value ?? null;
      return (this.#forms.get(name) ?? formsOf(value)).get(form) ?? null;
    });
  }

  /** Whether a text contains a secret. */
  isIn(text: string): boolean {
    return this.#inText.find(text).length > 0;
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  redact(text: string): string {
    return this.#inText.replace(text, asIs);
  }

  wholeFrom(text: string, from: number): number {
    return this.#inText.wholeFrom(text, from);
  }

  redactBytes(bytes: Uint8Array): Buffer {
    return this.#bytes.redact(bytes);
  }

  stream(): RedactingStream {
    return new MaskedStream(this.#bytes, asIs);
  }

  /** With references, for files that are records. */
  maskingStream(): RedactingStream {
    return new MaskedStream(this.#bytes, withoutReferencesInBytes);
  }

  get #bytes(): SecretMasks {
    this.#inBytes ??= masksOf(this.#forms, latin1, this.#label);
    return this.#inBytes;
  }

  /** The forms that are searched for, by name. */
  get forms(): ReadonlyMap<string, ReadonlyMap<string, string>> {
    return this.#forms;
  }
}

/** Texts in JSON values, and the keys of maps, with the values of secrets. */
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

const FACTOR = 0x01_00_01_93;

function masksOf(
  secrets: ReadonlyMap<string, ReadonlyMap<string, string>>,
  encode: (text: string) => string,
  label: (label: string) => string,
): SecretMasks {
  const forms = [...secrets].flatMap(([name, byId]) =>
    [...byId].map(([form, text]) => searchedForm(name, form, encode(text), FACTOR)),
  );
  return new SecretMasks(new FormSearch(forms, FACTOR), label);
}

export function searchedForm(name: string, form: string, text: string, factor: number): SearchedForm {
  return {
    name,
    form,
    length: text.length,
    hash: hashOf(text, factor),
    hasLineEnd: text.includes('\n'),
    isAt: (other, start) => other.startsWith(text, start),
  };
}

export function asIs(text: string): string {
  return text;
}

/** UTF-8, with one character for each byte. */
export function latin1(text: string): string {
  return Buffer.from(text).toString('latin1');
}

/** Like `withoutReferences`, for UTF-8 with one character for each byte. */
function withoutReferencesInBytes(text: string): string {
  if (!text.includes('\u00e2\u0080\u00a2')) return text;
  return text.replaceAll(
    /\u00e2\u0080\u00a2(?=\u00e2\u0080\u00a2|\u00e2\u0081\u00a0|[A-Za-z_]|$)/g,
    '\u00e2\u0080\u00a2\u00e2\u0081\u00a0',
  );
}

interface Hit {
  readonly start: number;
  readonly end: number;
  readonly name: string;
  readonly form: string;
}

/** The search for secrets, by their forms and by known kinds. */
export class SecretMasks {
  readonly #search: FormSearch;
  readonly #label: (label: string) => string;

  /** `label`: what is shown for a kind. */
  constructor(search: FormSearch, label: (label: string) => string) {
    this.#search = search;
    this.#label = label;
  }

  find(text: string): readonly Hit[] {
    const forms = this.#search.find(text).map(hitOf);
    const kinds = secretsByKind(text).filter(({ start, end }) =>
      forms.every((hit) => end <= hit.start || start >= hit.end),
    );
    if (kinds.length === 0) return forms;
    const ofKinds = kinds.map(({ start, end, label }) => ({ start, end, name: this.#label(label), form: '' }));
    return [...forms, ...ofKinds].toSorted((one, other) => one.start - other.start);
  }

  wholeFrom(text: string, from: number): number {
    return this.find(text).find(({ start, end }) => start < from && from < end)?.end ?? from;
  }

  /** `plain` changes the texts between secrets, `encode` the references. `after`: the text goes on with this. */
  replace(text: string, plain: (text: string) => string, encode: (text: string) => string = asIs, after = ''): string {
    const hits = this.find(text);
    if (hits.length === 0) return plain(text);
    let result = '';
    let at = 0;
    for (const { start, end, name, form } of hits) {
      // The first byte of a joiner counts as one.
      const next = (text.slice(end, end + 1) || after.slice(0, 1)).replace('\u00e2', '\u2060');
      result += plain(text.slice(at, start)) + encode(secretReference(name, form, next));
      at = end;
    }
    return result + plain(text.slice(at));
  }

  /** For texts with one character for each byte. */
  redact(bytes: Uint8Array): Buffer {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
    return Buffer.from(this.replace(text, asIs, latin1), 'latin1');
  }

  /** Of the same length, so that every byte keeps its offset: secrets are stars. The bytes themselves if there are none. */
  hide(bytes: Uint8Array): Uint8Array {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
    const hits = this.find(text);
    if (hits.length === 0) return bytes;
    const hidden = Buffer.from(bytes);
    for (const { start, end } of hits) hidden.fill('*', start, end);
    return hidden;
  }

  /** How much of a text can be shown before its next piece is known (secrets/3). */
  settled(text: string): number {
    const key = text.lastIndexOf('-----BEGIN ');
    const isOpenKey = key >= 0 && text.length - key < KIND_LENGTH_MAX && !KEY_END.test(text.slice(key));
    let word = text.length;
    while (word > 0 && text.length - word < TOKEN_MAX && !/\s/.test(text.charAt(word - 1))) word -= 1;
    const isToken = mayBeginSecret(text.slice(word));
    const settled = Math.min(
      this.#search.openAt(text),
      isOpenKey ? key : text.length,
      isToken ? word : Math.max(word, text.length - BEGINNING_MAX),
      // A secret may contain blanks, but few contain line ends.
      Math.max(text.length - SECRET_LENGTH_MIN + 1, this.#search.hasLineEnd ? 0 : text.lastIndexOf('\n') + 1),
    );
    const cut = this.find(text).find(({ start, end }) => start < settled && settled < end);
    let end = Math.max(0, cut?.start ?? settled);
    // Not in the middle of a character.
    while (end > 0 && isContinuation(text.charCodeAt(end))) end -= 1;
    return end;
  }
}

/** Longer than the beginning by which a secret of a known kind is recognized, and than a window of the search. */
const BEGINNING_MAX = 16;

const KEY_END = /-----END [A-Z0-9 ]{0,60}-----/;

/** Of secrets of known kinds, but for keys, which have several lines. */
const TOKEN_MAX = 2_048;

function isContinuation(byte: number): boolean {
  return byte >= 0x80 && byte <= 0xbf;
}

function hitOf({ start, form: { length, name, form } }: FoundForm): Hit {
  return { start, end: start + length, name, form };
}

export class MaskedStream implements RedactingStream {
  readonly #masks: SecretMasks;
  readonly #plain: (text: string) => string;
  #rest = '';

  constructor(masks: SecretMasks, plain: (text: string) => string) {
    this.#masks = masks;
    this.#plain = plain;
  }

  push(bytes: Uint8Array): Buffer {
    const text = this.#rest + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
    const settled = this.#masks.settled(text);
    this.#rest = text.slice(settled);
    return this.#show(text.slice(0, settled), this.#rest);
  }

  end(): Buffer {
    const text = this.#rest;
    this.#rest = '';
    return this.#show(text, '');
  }

  #show(text: string, after: string): Buffer {
    return Buffer.from(this.#masks.replace(text, this.#plain, latin1, after), 'latin1');
  }
}
