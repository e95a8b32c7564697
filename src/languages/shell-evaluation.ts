// Where bash evaluates a word after removing its quotes: as arithmetic, as a variable name, or as text again. There a
// value like `a[$(reboot)]` is executed however well it is quoted. This file finds such placeholders of a command; dash
// evaluates nothing of the kind. Anything unusual is refused.
//
// What a script does with its own variables, or with output of its commands, is out of scope: `n={{n}}; echo $((n))`.

import { HOLE } from './shell-heredoc.ts';

/** A word without its quotes. */
export interface Word {
  /** Contains placeholders as `HOLE`, in order; other parts known only at run time as `DYNAMIC`. */
  readonly text: string;
  /** Placeholders of the word itself, not those of a `$(…)` in it. */
  readonly holes: readonly number[];
}

/** An expansion; the placeholders inside it follow, as in `${x:-…}`. */
export const DYNAMIC = '\u0001';

export type Finding =
  | { readonly kind: 'refused'; readonly hole: number; readonly reason: string; readonly hint: string }
  /** Only an integer is allowed. */
  | { readonly kind: 'integer'; readonly hole: number }
  /** Must be quoted. */
  | { readonly kind: 'quoted'; readonly hole: number }
  /** Declared for this name: refused if the name is an array anywhere in the script. */
  | { readonly kind: 'declared'; readonly hole: number; readonly name: string }
  /** Names an array; null if the name is unknown. */
  | { readonly kind: 'array'; readonly name: string | null }
  /** No placeholder of the script is safe. */
  | { readonly kind: 'lost'; readonly reason: string; readonly hint: string };

/** Used where the environment is not an alternative. */
export const NO_CURE =
  'The environment would not help: bash evaluates "$NAME" there too. Write the name into the script, and have only data come from outside.';

export const ARRAY_VALUE = {
  reason: 'bash evaluates what is declared for an array',
  hint: 'Assign it without declaring it again: x={{…}}, or x=({{…}}).',
};

/** Assignments to these are arithmetic, or are expanded on use. */
const SPECIAL = /^(?:BASH\w+|DIRSTACK|EPOCH\w+|HISTCMD|LINENO|OPTIND|PS[0-9]|RANDOM|SECONDS|SRANDOM)$/;

const NAMING = new Set(['compgen', 'complete', 'getopts', 'let', 'mapfile', 'read', 'readarray', 'unset', 'wait']);
const DECLARING = new Set(['declare', 'export', 'local', 'readonly', 'typeset']);
const COMPARING = new Set(['-eq', '-ne', '-lt', '-le', '-gt', '-ge']);
const OF_NAMES = new Set(['-v', '-R']);

// ── Words ───────────────────────────────────────────────────────────────────────────────────────────────────────────

function refuseAll(words: readonly (Word | undefined)[], reason: string, hint: string = NO_CURE): readonly Finding[] {
  return words.flatMap((word) => word?.holes ?? []).map((hole) => ({ kind: 'refused', hole, reason, hint }));
}

const isKnown = ({ text }: Word): boolean => !text.includes(HOLE) && !text.includes(DYNAMIC);

/** Placeholders within the first characters of the word, and those after them. */
function split(word: Word, length: number): readonly [Word, Word] {
  const before = word.text.slice(0, length);
  const count = before.split(HOLE).length - 1;
  return [
    { text: before, holes: word.holes.slice(0, count) },
    { text: word.text.slice(length), holes: word.holes.slice(count) },
  ];
}

/** Up to the last possible end of a subscript. */
const ASSIGNMENT = /^([A-Za-z_]\w*)(\[[^]*\])?\+?=/;
const SUBSCRIPT = 'bash evaluates the subscript of an array';

/** The name of the array whose parentheses follow, as in `name=(…)`; null if none. */
export function arrayBefore({ text }: Word): string | null {
  const matched = ASSIGNMENT.exec(text);
  return matched?.[0] === text ? (matched[1] ?? null) : null;
}

/** Each word as the name of an array, with or without a value. */
function arraysIn(words: readonly Word[]): readonly Finding[] {
  return words.map((word) => ({
    kind: 'array',
    name: /^\w+(?![^=+[])/.exec(word.text)?.[0] ?? (isKnown(word) ? '' : null),
  }));
}

const isOpen = (text: string): boolean => text.split('[').length > text.split(']').length;

/** A word at the start of a command; null if it is not an assignment. */
export function judgeAssignment(word: Word): readonly Finding[] | null {
  const [matched, name = '', subscript] = ASSIGNMENT.exec(word.text) ?? [];
  // bash reads past spaces to the `]` of the subscript.
  if (/^[A-Za-z_]\w*\[/.test(word.text) && (isOpen(word.text) || matched === undefined))
    return [{ kind: 'lost', reason: 'it is within or after a subscript with spaces', hint: NO_CURE }];
  if (matched === undefined) return null;
  const [target, value] = split(word, matched.length);
  return [
    ...(subscript === undefined ? [] : [{ kind: 'array', name } as const]),
    ...refuseAll([target], SUBSCRIPT),
    ...(SPECIAL.test(name) ? refuseAll([value], `bash evaluates what is assigned to ${name}`) : []),
  ];
}

/** A word of `name=(…)`. */
export function judgeElement(word: Word): readonly Finding[] {
  if (!word.text.startsWith('[')) return [];
  if (isOpen(word.text)) return [{ kind: 'lost', reason: 'it is in or after a subscript with spaces', hint: NO_CURE }];
  const [target] = split(word, /^\[[^]*\]\+?=/.exec(word.text)?.[0].length ?? word.text.length);
  return refuseAll([target], SUBSCRIPT);
}

/** The word after `>&` and `<&`. */
export function judgeDuplicate(word: Word): readonly Finding[] {
  const reason = 'bash expands what follows >& a second time';
  return refuseAll([word], reason, 'Write > {{…}} 2>&1 instead.');
}

/** The word directly before `<` or `>`, as in `2>` and `{fd}>`; null if it is an ordinary word. */
export function judgeDescriptor(word: Word): readonly Finding[] | null {
  if (/^\d+$/.test(word.text)) return [];
  return /^\{[A-Za-z_]\w*(?:\[[^]*\])?\}$/.test(word.text) ? refuseAll([word], SUBSCRIPT) : null;
}

// ── Commands ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** A simple command, without its assignments and redirections. */
export function judgeCommand(words: readonly Word[]): readonly Finding[] {
  const at = commandAt(words);
  const [first] = words.slice(at);
  if (first === undefined) return [];
  // An expansion may be empty.
  const name = first.text.replaceAll(DYNAMIC, '');
  const rest = words.slice(at + 1);
  if (NAMING.has(name)) return judgeNaming(name, rest);
  if (DECLARING.has(name)) return judgeDeclaration(name, rest);
  if (name === 'test' || name === '[') return judgeTest(rest);
  if (name === 'printf') return judgePrintf(rest);
  if (name === 'for' || name === 'select') return judgeLoop(rest);
  if (/^[A-Za-z_]\w*\[/.test(name)) return refuseAll([first], SUBSCRIPT);
  return [];
}

/** Index of the command name: after `command` and `builtin`, and after expansions, which may be empty. */
function commandAt(words: readonly Word[]): number {
  let at = 0;
  let isOptional = false;
  for (const word of words) {
    const text = word.text.replaceAll(DYNAMIC, '');
    const isPrefix = text === '' || text === 'command' || text === 'builtin';
    if (!isPrefix && !(isOptional && text.startsWith('-'))) break;
    isOptional ||= isPrefix;
    at += 1;
  }
  return at;
}

const nameReason = (name: string): string => `bash evaluates the names that are given to \`${name}\``;

function judgeNaming(name: string, words: readonly Word[]): readonly Finding[] {
  const makesArray = name === 'mapfile' || name === 'readarray' || words.some(({ text }) => /^-\w*a/.test(text));
  const refused =
    name === 'let'
      ? refuseAll(words, 'bash calculates what is given to `let`', 'Write x=$((…)), where integers are allowed.')
      : refuseAll(words, nameReason(name));
  return [...(makesArray ? arraysIn(words) : []), ...refused];
}

function judgeDeclaration(name: string, words: readonly Word[]): readonly Finding[] {
  const options = words.filter(({ text }) => /^[-+]/.test(text)).map(({ text }) => text);
  const hasOption = (letters: RegExp): boolean => options.some((option) => letters.test(option));
  const isExport = name === 'export' || name === 'readonly';
  if (!isExport && hasOption(/^-.*[in]/)) {
    const reason = `bash evaluates what is assigned to a variable that \`${name}\` makes an integer (-i) or a reference (-n)`;
    return [{ kind: 'lost', reason, hint: 'Declare it without -i or -n, and calculate in $((…)).' }];
  }
  const isArray = hasOption(/[aA]/);
  const isVague = words.some(({ text }) => text.startsWith(HOLE) || text.startsWith(DYNAMIC));
  const findings = words.flatMap((word): readonly Finding[] => {
    const target = /^([A-Za-z_]\w*)\+?=/.exec(word.text)?.[1];
    if (target === undefined || isVague || SPECIAL.test(target)) return refuseAll([word], nameReason(name));
    if (isArray) return refuseAll([word], ARRAY_VALUE.reason, ARRAY_VALUE.hint);
    return isExport ? [] : word.holes.map((hole) => ({ kind: 'declared', hole, name: target }));
  });
  return isArray ? [...arraysIn(words), ...findings] : findings;
}

/** `test` and `[` compare without arithmetic; but `-v` takes a name, even if a value is `-v`. */
function judgeTest(words: readonly Word[]): readonly Finding[] {
  return words.flatMap((word, at) => {
    const before = words[at - 1];
    if (before === undefined || (isKnown(before) && !OF_NAMES.has(before.text))) return [];
    const reason = isKnown(before)
      ? `bash evaluates the name behind ${before.text}`
      : 'bash would evaluate it as a name, if the word before it is -v';
    return refuseAll([word], reason);
  });
}

/** `printf -v NAME`, even if the format itself is `-v`. */
function judgePrintf(words: readonly Word[]): readonly Finding[] {
  const reason = nameReason('printf -v');
  const findings: Finding[] = [];
  let at = 0;
  for (let word = words[at]; word !== undefined && isKnown(word) && word.text.startsWith('-v'); word = words[at]) {
    const name = word.text === '-v' ? words[at + 1] : undefined;
    findings.push(...refuseAll([name], reason));
    at += word.text === '-v' ? 2 : 1;
    if (SPECIAL.test(name?.text ?? word.text.slice(2))) findings.push(...refuseAll(words.slice(at), reason));
  }
  const format = words[at];
  const isLast = at >= words.length - 1;
  if (format === undefined || isLast || !(format.text.startsWith(HOLE) || format.text.startsWith('-'))) return findings;
  const asOption = 'bash would take a value that begins with -v for an option, and evaluate it';
  const hint = 'Write printf -- {{…}}, or give the format in the script: printf %s {{…}}.';
  return [...findings, ...refuseAll([format], asOption, hint)];
}

function judgeLoop([name, ...words]: readonly Word[]): readonly Finding[] {
  if (name === undefined) return [];
  const reason = 'the shell takes it as the name of a variable';
  return [...refuseAll([name], reason), ...(SPECIAL.test(name.text) ? refuseAll(words, reason) : [])];
}

/** The words of `[[ … ]]`, including operators. */
export function judgeCondition(words: readonly Word[]): readonly Finding[] {
  return words.flatMap((word, at): readonly Finding[] => {
    const before = words[at - 1]?.text ?? '';
    if (OF_NAMES.has(before)) return refuseAll([word], `bash evaluates the name behind ${before}`);
    const isNumber = COMPARING.has(before) || COMPARING.has(words[at + 1]?.text ?? '');
    return word.holes.map((hole) => ({ kind: isNumber ? 'integer' : 'quoted', hole }));
  });
}
