// References to secrets. Records hold these instead of values; drivers put the values back at the last moment, and nobody
// else does.
//
// reference/1  `•••NAME` stands for the value of the environment variable NAME; `•••NAME:FORM` for the value written in
//              another way, such as base64. An invisible character ends it if the text goes on with something that would
//              continue it.
// reference/2  Text from outside never becomes a reference, alone or joined with other texts: a bullet in it that could be a
//              part of one is followed by that invisible character.
// reference/3  `•••KIND` of a value that is known only by its kind has no value: it stays as it is.

const SECRET_MARK = '•••';

/** Word joiner: takes no room, and allows no line break. */
const JOINER = '\u2060';

const REFERENCES = /•\u2060|•••([A-Za-z_][A-Za-z0-9_]*)(?::([a-z0-9]+))?\u2060?/g;
const UNSAFE_BULLETS = /•(?=[•\u2060A-Za-z_]|$)/g;
const OPEN_END = /•••[A-Za-z_][A-Za-z0-9_]*(?::[a-z0-9]+)?$/;
const CONTINUES = /^[A-Za-z0-9_:\u2060]/;

/** `form`: empty for the value itself. `next`: the text that follows. */
export function secretReference(name: string, form: string, next: string): string {
  return closeReference(`${SECRET_MARK}${name}${form === '' ? '' : `:${form}`}`, next);
}

/** Texts one after the other, so that none continues the reference at the end of another. */
export function joinTexts(texts: readonly string[]): string {
  if (!texts.some((text) => text.includes(SECRET_MARK))) return texts.join('');
  return texts.reduce((joined, text) => closeReference(joined, text) + text, '');
}

function closeReference(text: string, next: string): string {
  return text.includes(SECRET_MARK) && CONTINUES.test(next) && OPEN_END.test(text) ? text + JOINER : text;
}

/** Text from outside, so that it contains no references (reference/2). */
export function withoutReferences(text: string): string {
  return text.includes('•') ? text.replaceAll(UNSAFE_BULLETS, `•${JOINER}`) : text;
}

/** The opposite of both: `value` returns null for a name without a value. */
export function revealReferences(text: string, value: (name: string, form: string) => string | null): string {
  if (!text.includes('•')) return text;
  return text.replaceAll(REFERENCES, (whole: string, name: string | undefined, form: string | undefined) => {
    if (name === undefined) return '•';
    return value(name, form ?? '') ?? whole;
  });
}

export function hasReference(text: string): boolean {
  return text.includes(SECRET_MARK) && referencedNames(text).length > 0;
}

/** The names in the references of a text. */
export function referencedNames(text: string): readonly string[] {
  if (!text.includes(SECRET_MARK)) return [];
  return [...text.matchAll(REFERENCES)].flatMap(([, name]) => (name === undefined ? [] : [name]));
}
