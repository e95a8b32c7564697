// Quotes, expansions and bodies of here-documents.

import type { QuoteLayer } from '../ir/quote.ts';
import { NO_CURE } from './shell-evaluation.ts';
import { findHeredocEnd, type Heredoc, HOLE, textAroundHoles } from './shell-heredoc.ts';
import type { HoleContext, Refusal, Scan } from './shell-scan.ts';

/** Context of a `$` or a backtick: decides what quotes mean inside `${…}`. */
type Around = 'bare' | 'double' | 'heredoc' | 'arithmetic';

// ── Quotes and expansions ───────────────────────────────────────────────────────────────────────────────────────────

/** At the opening '. Returns the quoted text. */
export function readSingle(s: Scan): string {
  s.at += 1;
  const from = s.at;
  while (s.at < s.text.length) {
    const character = s.next;
    if (character === HOLE) s.place({ kind: 'single' });
    else {
      s.at += 1;
      if (character === "'") return s.text.slice(from, s.at - 1);
    }
  }
  s.giveUp("it is within or after a ' that is never closed");
  return '';
}

/** At the opening ". Returns the quoted text, as text of a word. */
export function readDouble(s: Scan): string {
  let text = '';
  s.at += 1;
  while (s.at < s.text.length) {
    switch (s.next) {
      case '"':
        s.at += 1;
        return text;
      case HOLE:
        s.place({ kind: 'double' });
        text += HOLE;
        break;
      default:
        text += readCharacter(s, 'double');
    }
  }
  s.giveUp('it is within or after a " that is never closed');
  return text;
}

/** A plain character, an escape or an expansion. Returns it as text of a word. */
function readCharacter(s: Scan, around: Around): string {
  switch (s.next) {
    case '\\':
      return readBackslash(s);
    case '$':
    case '`':
      return readExpansion(s, around);
    default:
      s.at += 1;
      return s.text[s.at - 1] ?? '';
  }
}

/** At a `$` or a backtick; reads the whole expansion. Returns it as text of a word. */
export function readExpansion(s: Scan, around: Around): string {
  const read = s.next === '$' ? readDollar : readBackticks;
  return s.expansion(() => read(s, around));
}

function readDollar(s: Scan, around: Around): void {
  const next = s.text[s.at + 1];
  if (s.text.startsWith('$((', s.at)) {
    s.at += 3;
    s.nested(() => readArithmetic(s));
  } else if (next === '(') {
    s.at += 2;
    s.giveUpAtJoint();
    s.nested(() => s.readCommands(s, ')'), 'own');
  } else if (next === '{') s.nested(() => readBraces(s, around));
  else if (next === '[') s.giveUp('it is within or after $[…], which shells read differently', 'Write $((…)) instead.');
  else if (next === "'" && around === 'bare') readAnsiQuotes(s);
  else if (next === HOLE) {
    s.at += 1;
    s.refuse('the $ before it would make an expansion of its value');
  } else {
    const [text = '$'] = s.match(/\$(?:[A-Za-z_]\w*|\d|[?#@*!$-])?/y) ?? [];
    s.giveUpAtJoint();
    if (/\w$/.test(text) && s.next === HOLE)
      s.refuse(`its value would be read as part of the name ${text}; write \${${text.slice(1)}} there`);
  }
}

/** At `$'`, which bash reads as a string with escapes, and dash as a dollar and a plain string. */
function readAnsiQuotes(s: Scan): void {
  const why = "it is inside $'…', which shells read differently";
  s.at += 2;
  while (s.at < s.text.length) {
    const character = s.next;
    if (character === HOLE) s.refuse(why);
    else if (character === '\\' && s.text[s.at + 1] === "'")
      return s.giveUp("it is after a $'…' that shells read differently");
    else {
      s.at += 1;
      if (character === "'") return;
    }
  }
  s.giveUp(why);
}

/** At `${`. */
function readBraces(s: Scan, around: Around): void {
  const first = s.found.length;
  const [, operator = ''] = s.match(/\$\{(?:#|!)?(?:[A-Za-z_]\w*|\d+|[@*#?$!-])?(:?[-=?+]|##?|%%?)?/y) ?? [];
  const refusal = operator === '' && /[[:]/.test(s.next ?? '') ? CALCULATED : UNCLEAR;
  while (s.at < s.text.length) {
    switch (s.next) {
      case '}':
        s.at += 1;
        // Even quoted ones: quotes do not help in bash arithmetic.
        if (operator === '') for (const hole of s.holesSince(first)) s.refuseFound(hole, refusal);
        return;
      case HOLE:
        readBracesHole(s, around, operator, refusal);
        break;
      case "'":
        if (around === 'bare') readSingle(s);
        else s.giveUp("it is within or after a ' within ${…}, which shells read differently");
        break;
      case '"':
        if (around === 'bare') readDouble(s);
        else if (around === 'double') readInnerDouble(s, /^[#%]/.test(operator));
        else s.giveUp('it is within or after quotes within ${…}, which shells read differently there');
        break;
      default:
        readCharacter(s, around);
    }
  }
  s.giveUp('it is within or after a ${ that is never closed');
}

const UNCLEAR: Refusal = {
  reason: 'it is within ${…} where its value could not be told from the text around it',
  hint: null,
};

/** `${x[…]}`, `${x:…}`. */
const CALCULATED: Refusal = { reason: 'bash calculates there, and evaluates the names that it finds', hint: NO_CURE };

function readBracesHole(s: Scan, around: Around, operator: string, refusal: Refusal): void {
  if (operator === '') s.refuse(refusal.reason, refusal.hint);
  else if (around === 'arithmetic') s.place({ kind: 'integer' });
  else if (around === 'bare') s.place({ kind: 'quoted' });
  else if (around === 'double' && /[-=?+]$/.test(operator)) s.place({ kind: 'double-braced' });
  else s.refuse(refusal.reason, refusal.hint);
}

/** At a " inside "${…}". Shells agree on its end if it has no brace or is in a pattern, but not on a value in it. */
function readInnerDouble(s: Scan, isPattern: boolean): void {
  const start = s.at;
  const first = s.found.length;
  readDouble(s);
  if (!isPattern && s.text.slice(start, s.at).includes('}'))
    return s.giveUp('it is within or after quotes within "${…}"');
  for (let hole = first; hole < s.found.length; hole++) {
    s.found[hole] = { kind: 'refused', reason: 'it is within quotes within "${…}"', hint: null };
  }
}

/** After `$((` or `((`. */
export function readArithmetic(s: Scan): void {
  let brackets = 0;
  let quoted = false;
  while (s.at < s.text.length) {
    const character = s.next;
    const odd = character === "'" || (quoted && (character === '(' || character === ')'));
    if (odd) return s.giveUp('it is within or after quotes in $((…))');
    switch (character) {
      case '"':
        quoted = !quoted;
        s.at += 1;
        break;
      case HOLE:
        s.place({ kind: 'integer' });
        break;
      case '(':
        brackets += 1;
        s.at += 1;
        break;
      case ')':
        s.at += 1;
        if (brackets > 0) brackets -= 1;
        else if (s.next === ')') {
          s.at += 1;
          return;
        } else return s.giveUp('it is after a (( that could be two brackets; put a space between them');
        break;
      default:
        readCharacter(s, 'arithmetic');
    }
  }
  s.giveUp('it is within or after a (( that is never closed');
}

/** At a backtick. Up to the next unescaped one, the shell removes one level of backslashes, and reads a script. */
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
    // The value is escaped for the backticks, and this backslash would consume its first escape.
    if (next === HOLE) return s.giveUp('it is after a backslash within backticks');
    const removed = '$`\\'.includes(next) || (next === '"' && around === 'double');
    if (next === '"' && around === 'heredoc') return s.giveUp('it is after a \\" within backticks of a here-document');
    script += removed && next !== '' ? next : `\\${next}`;
    at += 2;
  }
  if (at >= s.text.length) return s.giveUp('it is within or after a ` that is never closed');
  s.at = at + 1;
  if (!s.isTooDeep()) s.within(script, [{ kind: 'backtick' }, ...s.around], () => s.readCommands(s, null));
}

/** At a backslash outside of single quotes. Returns the escaped character; a line end disappears. */
export function readBackslash(s: Scan): string {
  s.at += 1;
  const escaped = s.next ?? '';
  if (escaped === HOLE) s.refuse('the backslash before it would escape a part of its value');
  else s.at += 1;
  return escaped === '\n' ? '' : escaped;
}

// ── Here-documents ──────────────────────────────────────────────────────────────────────────────────────────────────

/** At the start of the body's first line; reads past the delimiter's line. */
export function readHeredoc(s: Scan, heredoc: Heredoc): void {
  const end = findHeredocEnd(s.text, s.at, heredoc);
  if (end === null)
    return s.giveUp(
      `it is in or after a here-document without its last line, ${heredoc.delimiter}, or with one that begins like it`,
    );
  readHeredocBody(s, heredoc, s.text.slice(s.at, end.body));
  if (s.lost === null) s.at = end.next;
}

function readHeredocBody(s: Scan, heredoc: Heredoc, body: string): void {
  const { delimiter, raw, tabs } = heredoc;
  // The body needs the escaping of its kind; a $(…) inside it must only keep the lines intact.
  const anywhere = { delimiter, tabs, lead: null, tail: '' } as const;
  const layer: QuoteLayer = { kind: raw ? 'heredoc-raw' : 'heredoc', ...anywhere };
  const outerLayer: QuoteLayer = { kind: 'heredoc-raw', ...anywhere };
  const { around } = s;
  const inner = [outerLayer, ...around];
  const first = s.found.length;
  s.within(body, around, () => {
    while (s.at < s.text.length) {
      if (s.next === HOLE) s.place(layer);
      else if (raw) s.at += 1;
      else {
        s.around = inner;
        readCharacter(s, 'heredoc');
        s.around = around;
      }
    }
  });
  if (s.lost !== null) return;
  for (const [index, surroundings] of textAroundHoles(body, heredoc).entries()) {
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
  hint: null,
};
