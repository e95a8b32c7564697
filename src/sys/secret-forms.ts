// The ways in which the value of a secret may be written, and a search for them in texts.
//
// forms/1  The id of a form is a part of references in journals: it never gets another meaning.
// forms/2  A search is one pass over a text, however many forms there are: it compares a hash of the next characters, and
//          only where that is the hash of a form, the form itself. Of several at one place the longest counts.

/** Shorter values are not searched for: they would be found in words. */
export const SECRET_LENGTH_MIN = 8;

/** Texts by the ids of their forms; the value itself has an empty id. None is shorter than the minimum. */
export function formsOf(value: string): ReadonlyMap<string, string> {
  const forms = new Map<string, string>();
  const known = new Set<string>();
  const add = (id: string, text: string): void => {
    if (text.length < SECRET_LENGTH_MIN || known.has(text)) return;
    known.add(text);
    forms.set(id, text);
  };
  add('', value);
  add('trim', value.trim());
  if (value.includes('\n')) {
    add('crlf', value.replaceAll('\n', '\r\n'));
    value
      .split(/\r?\n/, LINES_MAX)
      .forEach((line, at) => void (line.length >= LINE_LENGTH_MIN && add(`line${at}`, line)));
  }
  // In shell scripts.
  add('sq', value.replaceAll("'", String.raw`'\''`));
  add('dq', value.replaceAll(/[\\"$`]/g, String.raw`\$&`));
  const json = JSON.stringify(value).slice(1, -1);
  add('json', json);
  add('json2', JSON.stringify(json).slice(1, -1));
  for (const [id, kept, space] of URL_FORMS) {
    const text = percentEncoded(value, kept, space);
    add(id, text);
    add(
      `${id}l`,
      text.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    );
  }
  for (const [id, encoding] of [
    ['b64', 'base64'],
    ['u64', 'base64url'],
  ] as const) {
    const whole = Buffer.from(value).toString(encoding);
    const line = Buffer.from(`${value}\n`).toString(encoding);
    for (const [suffix, text] of [
      ['', whole],
      ['e', line],
    ] as const) {
      add(`${id}${suffix}`, text);
      add(`${id}${suffix}n`, text.replace(/=+$/, ''));
      add(`${id}${suffix}w`, text.replaceAll(/.{76}(?=.)/g, '$&\n'));
    }
    // Inside of longer data: the characters that depend on nothing but the value, for each place in a group of three bytes.
    for (const at of [0, 1, 2]) add(`${id}i${at}`, innerBase64(Buffer.from(value), at, encoding));
  }
  return forms;
}

const LINES_MAX = 200;
const LINE_LENGTH_MIN = 16;

/** Characters that are not encoded, and what a blank becomes. */
const URL_FORMS = [
  ['url', /[A-Za-z0-9\-_.!~*'()]/, '%20'],
  ['rfc', /[A-Za-z0-9\-_.~]/, '%20'],
  ['path', /[A-Za-z0-9\-_.~/]/, '%20'],
  ['form', /[A-Za-z0-9*\-._]/, '+'],
  ['plus', /[A-Za-z0-9\-_.~]/, '+'],
] as const;

function percentEncoded(value: string, kept: RegExp, space: string): string {
  return Array.from(value)
    .map((character) => {
      if (kept.test(character)) return character;
      if (character === ' ') return space;
      return [...Buffer.from(character)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, '0')}`).join('');
    })
    .join('');
}

function innerBase64(value: Buffer, at: number, encoding: 'base64' | 'base64url'): string {
  const text = Buffer.concat([Buffer.alloc(at), value])
    .toString(encoding)
    .replace(/=+$/, '');
  const first = Math.ceil((at * 8) / 6);
  const end = Math.floor(((at + value.length) * 8) / 6);
  return text.slice(first, end);
}

export interface SearchedForm {
  readonly name: string;
  readonly form: string;
  readonly length: number;
  /** `hashOf` its first characters. */
  readonly hash: number;
  readonly hasLineEnd: boolean;
  isAt(text: string, start: number): boolean;
}

export interface FoundForm {
  readonly form: SearchedForm;
  readonly start: number;
}

const WINDOW = SECRET_LENGTH_MIN;

/** Of the first characters of a text. */
export function hashOf(text: string, factor: number): number {
  let hash = 0;
  for (let at = 0; at < WINDOW; at++) hash = (Math.imul(hash, factor) + text.charCodeAt(at)) >>> 0;
  return hash;
}

export class FormSearch {
  readonly #forms = new Map<number, SearchedForm[]>();
  /** By 16 bits of a hash: whether a form may have it. */
  readonly #mayHave = new Uint8Array(65_536);
  readonly #factor: number;
  /** What the first character of a window counts when it leaves. */
  readonly #leaving: number;
  readonly #isEmpty: boolean;
  /** Whether a form goes over line ends. */
  readonly hasLineEnd: boolean;

  constructor(forms: readonly SearchedForm[], factor: number) {
    this.#factor = factor;
    let leaving = 1;
    for (let at = 1; at < WINDOW; at++) leaving = Math.imul(leaving, factor) >>> 0;
    this.#leaving = leaving;
    this.#isEmpty = forms.length === 0;
    this.hasLineEnd = forms.some(({ hasLineEnd }) => hasLineEnd);
    for (const form of forms.toSorted((one, other) => other.length - one.length)) {
      this.#mayHave[form.hash >>> 16] = 1;
      const same = this.#forms.get(form.hash);
      if (same === undefined) this.#forms.set(form.hash, [form]);
      else same.push(form);
    }
  }

  /** All forms in a text, in order; none overlap. */
  find(text: string): readonly FoundForm[] {
    const found: FoundForm[] = [];
    this.#scan(text, (start, forms) => {
      const form = forms.find((each) => start + each.length <= text.length && each.isAt(text, start));
      if (form === undefined) return start + 1;
      found.push({ form, start });
      return start + form.length;
    });
    return found;
  }

  /** Where a form may begin that the end of the text cuts off; the length of the text if nowhere. */
  openAt(text: string): number {
    let open = text.length;
    this.#scan(text, (start, forms) => {
      if (forms.some(({ length }) => start + length > text.length)) open = Math.min(open, start);
      return start + 1;
    });
    return open;
  }

  /** Calls for each place where a form may begin; the result is the place to go on from. */
  #scan(text: string, visit: (start: number, forms: readonly SearchedForm[]) => number): void {
    if (this.#isEmpty || text.length < WINDOW) return;
    const factor = this.#factor;
    let start = 0;
    let hash = hashOf(text, factor);
    for (;;) {
      if (this.#mayHave[hash >>> 16] === 1) {
        const forms = this.#forms.get(hash);
        const next = forms === undefined ? start + 1 : visit(start, forms);
        if (next > start + 1) {
          if (next + WINDOW > text.length) return;
          start = next;
          hash = hashOf(text.slice(start, start + WINDOW), factor);
          continue;
        }
      }
      if (start + WINDOW >= text.length) return;
      const without = (hash - Math.imul(text.charCodeAt(start), this.#leaving)) >>> 0;
      hash = (Math.imul(without, factor) + text.charCodeAt(start + WINDOW)) >>> 0;
      start += 1;
    }
  }
}
