// Where in a shell script each {{…}} stands, and so how its value must be quoted. The script is read as POSIX sh reads
// it, as far as quoting goes: words, quotes, expansions, here-documents, comments, `case` patterns.
//
//   - A hole is a NUL character here; scripts have no others.
//   - A place is accepted only where dash and bash agree on it. Where they might not, where the script is not well
//     formed, or where even a quoted value would change what the text around it means, the hole is refused with a
//     reason. A wrong answer would let a value become code, a refusal costs the author one line.
//   - Where the reader loses its way it may have lost it earlier than it noticed: then every hole is refused.

import type { QuoteLayer } from '../../ir/quote.ts';
import type { Heredoc } from './shell-heredoc.ts';
import { findHeredocEnd, HOLE, holeSurroundings, readDelimiter } from './shell-heredoc.ts';

export type HoleContext =
  | { readonly kind: 'placed'; readonly layers: readonly QuoteLayer[] }
  | { readonly kind: 'refused'; readonly reason: string };

/** One context for each hole, in the order of the text. */
export function shellContexts(script: string): readonly HoleContext[] {
  const scan: Scan = { text: script, at: 0, around: [], found: [], depth: 0, lost: null };
  readCommands(scan, null);
  const { found, lost } = scan;
  return lost === null
    ? found
    : script
        .split(HOLE)
        .slice(1)
        .map(() => ({ kind: 'refused', reason: lost }));
}

interface Scan {
  readonly text: string;
  at: number;
  /** What the shell does to this text before it reads it as a script: backticks, here-documents. */
  readonly around: readonly QuoteLayer[];
  readonly found: HoleContext[];
  readonly depth: number;
  /** Why the script cannot be followed. */
  lost: string | null;
}

/** Within what a `$` or a backtick stands: decides what quotes mean inside `${…}`. */
type Around = 'bare' | 'double' | 'heredoc' | 'arithmetic';

const DEPTH_MAX = 50;

// ── Holes ───────────────────────────────────────────────────────────────────────────────────────────────────────────

/** At a hole: its value goes in with this layer, and goes on behind it. */
function place(s: Scan, layer: QuoteLayer): void {
  s.found.push({ kind: 'placed', layers: [layer, ...s.around] });
  s.at += 1;
}

/** At a hole: refuses it, and goes on behind it. */
function refuse(s: Scan, reason: string): void {
  s.found.push({ kind: 'refused', reason });
  s.at += 1;
}

function lose(s: Scan, reason: string): void {
  s.lost ??= reason;
  s.at = s.text.length;
}

/** Behind the beginning of something whose rest may stand on the next line: a joint that shells see through. */
function loseAtJoint(s: Scan): void {
  if (s.text.startsWith('\\\n', s.at)) lose(s, 'a sign of the shell is cut in two by the end of a line');
}

// ── Commands ────────────────────────────────────────────────────────────────────────────────────────────────────────

/** Words that are followed by another command. */
const BEFORE_COMMAND = new Set(['if', 'then', 'else', 'elif', 'while', 'until', 'do', '!', '{', 'time']);

/** What is open: a bracket, or a `case` and how far it is. */
type Open = 'bracket' | 'case-subject' | 'case-in' | 'case-pattern' | 'case-body';

/** Reads commands to the end of the text, or behind the `)` that closes a `$(`. */
function readCommands(s: Scan, close: ')' | null): void {
  const open: Open[] = [];
  const heredocs: Heredoc[] = [];
  /** Whether the next word is where a command (or a pattern) may begin. */
  let first = true;
  /** Whether the next word belongs to a redirection. */
  let redirected = false;
  /** The word being read: its text, or null as soon as a quote, an expansion or a hole makes it an ordinary word. */
  let word: string | null = '';
  let inWord = false;

  /** A part that makes the word an ordinary one. */
  const readPart = (read: (s: Scan) => void): void => {
    word = null;
    inWord = true;
    const from = s.at;
    read(s);
    // Shells differ on which line end the body of a here-document follows then.
    if (heredocs.length > 0 && s.text.slice(from, s.at).includes('\n')) {
      lose(s, 'the line that begins a here-document goes on over a line end within quotes or brackets');
    }
  };

  const endWord = (): void => {
    if (!inWord) return;
    const text = word;
    word = '';
    inWord = false;
    if (redirected) {
      redirected = false;
      return;
    }
    const top = open.at(-1);
    if (top === 'case-subject') open[open.length - 1] = 'case-in';
    else if (top === 'case-in') {
      if (text !== 'in') lose(s, 'it stands after a `case` that this version cannot follow');
      open[open.length - 1] = 'case-pattern';
      first = true;
    } else if (first && text === 'esac' && (top === 'case-pattern' || top === 'case-body')) {
      open.pop();
      first = false;
    } else if (first && text === 'case' && top !== 'case-pattern') {
      open.push('case-subject');
      first = false;
    } else if (!(first && text !== null && (BEFORE_COMMAND.has(text) || /^[A-Za-z_]\w*=/.test(text)))) first = false;
  };

  const closeBracket = (): boolean => {
    const top = open.at(-1);
    if (top === 'case-pattern') {
      open[open.length - 1] = 'case-body';
      first = true;
    } else if (top === 'bracket') {
      open.pop();
      first = true;
    } else if (top === undefined && close === ')') return true;
    else lose(s, 'it stands after a ) that closes nothing');
    return false;
  };

  while (s.at < s.text.length) {
    const character = s.text[s.at];
    switch (character) {
      case HOLE:
        readPart(readWordHole);
        break;
      case "'":
        readPart(readSingle);
        break;
      case '"':
        readPart(readDouble);
        break;
      case '`':
        readPart((part) => readBackticks(part, 'bare'));
        break;
      case '$':
        readPart((part) => readDollar(part, 'bare'));
        break;
      case '\\':
        if (s.text[s.at + 1] === '\n') s.at += 2;
        else readPart(readBackslash);
        break;
      case ' ':
      case '\t':
        endWord();
        s.at += 1;
        break;
      case '\n':
        endWord();
        s.at += 1;
        first = true;
        for (const heredoc of heredocs.splice(0)) readHeredoc(s, heredoc);
        break;
      case '#':
        if (inWord) {
          word = null;
          s.at += 1;
        } else readComment(s);
        break;
      case ';':
        endWord();
        if (s.text[s.at + 1] === ';' || s.text[s.at + 1] === '&') {
          if (open.at(-1) === 'case-body') open[open.length - 1] = 'case-pattern';
          else lose(s, 'it stands after a ;; that belongs to no `case`');
          s.at += s.text.startsWith(';;&', s.at) ? 3 : 2;
        } else s.at += 1;
        first = true;
        break;
      case '&':
      case '|':
        endWord();
        s.at += 1;
        first = true;
        break;
      case '(':
        endWord();
        if (s.text[s.at + 1] === '(' && open.at(-1) !== 'case-pattern') {
          s.at += 2;
          readPart(readArithmetic);
        } else {
          if (open.at(-1) !== 'case-pattern') open.push('bracket');
          s.at += 1;
          loseAtJoint(s);
          first = open.at(-1) !== 'case-pattern';
        }
        break;
      case ')':
        endWord();
        s.at += 1;
        if (closeBracket()) {
          if (heredocs.length > 0) lose(s, 'a here-document begins on the last line of a $(…)');
          return;
        }
        break;
      case '<':
      case '>': {
        endWord();
        const heredoc = readRedirection(s);
        if (heredoc === 'process') {
          open.push('bracket');
          first = true;
        } else if (heredoc === 'word') redirected = true;
        else if (heredoc !== null) heredocs.push(heredoc);
        break;
      }
      default:
        if (word !== null) word += character ?? '';
        inWord = true;
        s.at += 1;
    }
  }
  endWord();
  if (close !== null) lose(s, 'it stands within or after a $( that is never closed');
}

/**
 * A value may go without quotes, if it is harmless, where it is a word of its own, or where what touches it can
 * neither be completed by it to a word of the shell's own (`i` and `f`) nor give it a meaning (`~`, `{a,b}`).
 */
function readWordHole(s: Scan): void {
  const apart = (character: string): boolean => ' \t\n;&|()<>=/:-.@%+'.includes(character);
  const before = s.text.slice(Math.max(0, s.at - 100), s.at);
  const wordBefore = /(?:[^\s;&|()<>]|\\\n)*$/.exec(before)?.[0] ?? '';
  const loose = apart(before.slice(-1)) && apart(s.text.slice(s.at + 1, s.at + 2)) && !/[~{[\\]/.test(wordBefore);
  place(s, { kind: loose ? 'bare' : 'quoted' });
}

function readComment(s: Scan): void {
  while (s.at < s.text.length && s.text[s.at] !== '\n') {
    if (s.text[s.at] === HOLE) place(s, { kind: 'comment' });
    else s.at += 1;
  }
}

/** At a backslash outside of quotes. */
function readBackslash(s: Scan): void {
  s.at += 1;
  if (s.text[s.at] === HOLE) refuse(s, 'the backslash before it would escape a part of its value');
  else s.at += 1;
}

/** At `<` or `>`: a here-document, a word that follows, or the bracket of a process substitution. */
function readRedirection(s: Scan): Heredoc | 'word' | 'process' | null {
  const operator = /<<<|<<-?|[<>]\(|>>|>\||[<>]&|<>|[<>]/y;
  operator.lastIndex = s.at;
  const text = operator.exec(s.text)?.[0] ?? '<';
  s.at += text.length;
  loseAtJoint(s);
  if (text.endsWith('(')) return 'process';
  if (text !== '<<' && text !== '<<-') return 'word';
  const read = readDelimiter(s.text, s.at);
  if (read === null) {
    lose(s, 'it stands after a here-document whose delimiter cannot be told');
    return null;
  }
  s.at = read.end;
  return { delimiter: read.delimiter, raw: read.raw, tabs: text === '<<-' ? 'stripped' : 'kept' };
}

// ── Here-documents ──────────────────────────────────────────────────────────────────────────────────────────────────

/** At the beginning of the body's first line: reads to behind the delimiter's line. */
function readHeredoc(s: Scan, heredoc: Heredoc): void {
  const end = findHeredocEnd(s.text, s.at, heredoc);
  if (end === null) return lose(s, `it stands in or after a here-document without its last line, ${heredoc.delimiter}`);
  readHeredocBody(s, heredoc, s.text.slice(s.at, end.body));
  if (s.lost === null) s.at = end.next;
}

function readHeredocBody(s: Scan, heredoc: Heredoc, body: string): void {
  const { delimiter, raw, tabs } = heredoc;
  // The body itself needs the escaping of its kind; what stands in a $(…) of it needs only to leave the lines alone.
  const anywhere = { delimiter, tabs, lead: null, tail: '' } as const;
  const layer: QuoteLayer = { kind: raw ? 'heredoc-raw' : 'heredoc', ...anywhere };
  const outerLayer: QuoteLayer = { kind: 'heredoc-raw', ...anywhere };
  const direct = inner(s, body, s.around);
  const nested = inner(s, body, [outerLayer, ...s.around]);
  const first = s.found.length;
  while (direct.at < body.length && nested.lost === null) {
    const character = body[direct.at];
    if (character === HOLE) place(direct, layer);
    else if (!raw && character === '\\') readBackslash(direct);
    else if (!raw && (character === '$' || character === '`')) {
      nested.at = direct.at;
      if (character === '$') readDollar(nested, 'heredoc');
      else readBackticks(nested, 'heredoc');
      direct.at = nested.at;
    } else direct.at += 1;
  }
  if (nested.lost !== null) return lose(s, nested.lost);
  for (const [index, surroundings] of holeSurroundings(body, heredoc).entries()) {
    const found = s.found[first + index];
    if (found?.kind !== 'placed') continue;
    const settle = (one: QuoteLayer): QuoteLayer =>
      one === layer || one === outerLayer ? { ...one, ...surroundings } : one;
    s.found[first + index] = surroundings === null ? AMBIGUOUS : { kind: 'placed', layers: found.layers.map(settle) };
  }
}

const AMBIGUOUS: HoleContext = {
  kind: 'refused',
  reason: 'with others beside it or a line joined to its own, it could make the line that ends the here-document',
};

// ── Quotes and expansions ───────────────────────────────────────────────────────────────────────────────────────────

/** At the opening '. */
function readSingle(s: Scan): void {
  s.at += 1;
  while (s.at < s.text.length) {
    const character = s.text[s.at];
    if (character === HOLE) place(s, { kind: 'single' });
    else {
      s.at += 1;
      if (character === "'") return;
    }
  }
  lose(s, "it stands within or after a ' that is never closed");
}

/** At the opening ". */
function readDouble(s: Scan): void {
  s.at += 1;
  while (s.at < s.text.length) {
    const character = s.text[s.at];
    if (character === HOLE) place(s, { kind: 'double' });
    else if (character === '\\') readBackslash(s);
    else if (character === '$') readDollar(s, 'double');
    else if (character === '`') readBackticks(s, 'double');
    else {
      s.at += 1;
      if (character === '"') return;
    }
  }
  lose(s, 'it stands within or after a " that is never closed');
}

/** At a `$`, with what belongs to it. */
function readDollar(s: Scan, around: Around): void {
  const next = s.text[s.at + 1];
  if (s.text.startsWith('$((', s.at)) {
    s.at += 3;
    deeper(s, readArithmetic);
  } else if (next === '(') {
    s.at += 2;
    loseAtJoint(s);
    deeper(s, (nested) => {
      readCommands(nested, ')');
    });
  } else if (next === '{') {
    deeper(s, (nested) => {
      readBraces(nested, around);
    });
  } else if (next === "'" && around === 'bare') readAnsiQuotes(s);
  else if (next === HOLE) {
    s.at += 1;
    refuse(s, 'the $ before it would make an expansion of its value');
  } else {
    const name = /\$(?:[A-Za-z_]\w*|\d|[?#@*!$-])?/y;
    name.lastIndex = s.at;
    const text = name.exec(s.text)?.[0] ?? '$';
    s.at += text.length;
    loseAtJoint(s);
    if (/\w$/.test(text) && s.text[s.at] === HOLE) {
      refuse(s, `its value would be read as part of the name ${text}; write \${${text.slice(1)}} there`);
    }
  }
}

/** At `$'`, which bash reads as a string with escapes, and dash as a dollar and a plain string. */
function readAnsiQuotes(s: Scan): void {
  const why = "it stands within $'…', which shells read differently";
  s.at += 2;
  while (s.at < s.text.length) {
    const character = s.text[s.at];
    if (character === HOLE) refuse(s, why);
    else if (character === '\\' && s.text[s.at + 1] === "'")
      return lose(s, "it stands after a $'…' that shells read differently");
    else {
      s.at += 1;
      if (character === "'") return;
    }
  }
  lose(s, why);
}

/** At `${`. */
function readBraces(s: Scan, around: Around): void {
  const head = /\$\{(?:#|!)?(?:[A-Za-z_]\w*|\d+|[@*#?$!-])?(:?[-=?+]|##?|%%?)?/y;
  head.lastIndex = s.at;
  const matched = head.exec(s.text);
  const operator = matched?.[1] ?? '';
  const isPattern = /^[#%]/.test(operator);
  s.at += matched?.[0].length ?? 2;
  while (s.at < s.text.length) {
    switch (s.text[s.at]) {
      case '}':
        s.at += 1;
        return;
      case HOLE:
        readBracesHole(s, around, operator);
        break;
      case '\\':
        readBackslash(s);
        break;
      case '$':
        readDollar(s, around);
        break;
      case '`':
        readBackticks(s, around);
        break;
      case "'":
        if (around === 'bare') readSingle(s);
        else lose(s, "it stands within or after a ' within ${…}, which shells read differently");
        break;
      case '"':
        if (around === 'bare') readDouble(s);
        else if (around === 'double') readInnerDouble(s, isPattern);
        else lose(s, 'it stands within or after quotes within ${…}, which shells read differently there');
        break;
      default:
        s.at += 1;
    }
  }
  lose(s, 'it stands within or after a ${ that is never closed');
}

function readBracesHole(s: Scan, around: Around, operator: string): void {
  const odd = 'it stands within ${…} where its value could not be told from the text around it';
  if (operator === '') refuse(s, odd);
  else if (around === 'arithmetic') place(s, { kind: 'integer' });
  else if (around === 'bare') place(s, { kind: 'quoted' });
  else if (around === 'double' && /[-=?+]$/.test(operator)) place(s, { kind: 'double-braced' });
  else refuse(s, odd);
}

/**
 * At a " within "${…}". Shells agree on where it closes, if it holds no brace or stands in a pattern; and on what a
 * value in it would mean they do not.
 */
function readInnerDouble(s: Scan, isPattern: boolean): void {
  const start = s.at;
  const first = s.found.length;
  readDouble(s);
  if (!isPattern && s.text.slice(start, s.at).includes('}'))
    return lose(s, 'it stands within or after quotes within "${…}"');
  for (let hole = first; hole < s.found.length; hole++) {
    s.found[hole] = { kind: 'refused', reason: 'it stands within quotes within "${…}"' };
  }
}

/** Behind `$((` or `((`. */
function readArithmetic(s: Scan): void {
  let brackets = 0;
  let quoted = false;
  while (s.at < s.text.length) {
    const character = s.text[s.at];
    const odd = character === "'" || (quoted && (character === '(' || character === ')'));
    if (odd) return lose(s, 'it stands within or after quotes in $((…))');
    switch (character) {
      case '"':
        quoted = !quoted;
        s.at += 1;
        break;
      case HOLE:
        place(s, { kind: 'integer' });
        break;
      case '\\':
        readBackslash(s);
        break;
      case '$':
        readDollar(s, 'arithmetic');
        break;
      case '`':
        readBackticks(s, 'arithmetic');
        break;
      case '(':
        brackets += 1;
        s.at += 1;
        break;
      case ')':
        s.at += 1;
        if (brackets > 0) brackets -= 1;
        else if (s.text[s.at] === ')') {
          s.at += 1;
          return;
        } else return lose(s, 'it stands after a (( that could be two brackets; put a space between them');
        break;
      default:
        s.at += 1;
    }
  }
  lose(s, 'it stands within or after a (( that is never closed');
}

/**
 * At the opening backtick. The shell takes the text up to the next one that is not escaped, removes one level of
 * backslashes, and reads what is left as a script.
 */
function readBackticks(s: Scan, around: Around): void {
  let script = '';
  let at = s.at + 1;
  while (at < s.text.length && s.text[at] !== '`') {
    if (s.text[at] !== '\\') {
      script += s.text[at] ?? '';
      at += 1;
      continue;
    }
    const next = s.text[at + 1] ?? '';
    // The value is escaped for the backticks, and this backslash would take away the first of its own.
    if (next === HOLE) return lose(s, 'it stands behind a backslash within backticks');
    const removed = '$`\\'.includes(next) || (next === '"' && around === 'double');
    if (next === '"' && around === 'heredoc')
      return lose(s, 'it stands after a \\" within backticks of a here-document');
    script += removed && next !== '' ? next : `\\${next}`;
    at += 2;
  }
  if (at >= s.text.length) return lose(s, 'it stands within or after a ` that is never closed');
  s.at = at + 1;
  if (s.depth >= DEPTH_MAX) return lose(s, 'it stands too deep in the script');
  const nested = inner(s, script, [{ kind: 'backtick' }, ...s.around]);
  readCommands(nested, null);
  if (nested.lost !== null) lose(s, nested.lost);
}

/** A text of its own within the script. */
function inner(s: Scan, text: string, around: readonly QuoteLayer[]): Scan {
  return { text, at: 0, around, found: s.found, depth: s.depth + 1, lost: s.lost };
}

/** Reads on in the same text, one level down. */
function deeper(s: Scan, read: (nested: Scan) => void): void {
  if (s.depth >= DEPTH_MAX) return lose(s, 'it stands too deep in the script');
  const nested: Scan = { ...s, depth: s.depth + 1 };
  read(nested);
  s.at = nested.at;
  s.lost = nested.lost;
}
