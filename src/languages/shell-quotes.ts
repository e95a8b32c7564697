// Quotes, expansions and bodies of here-documents.

import type { QuoteLayer } from '../ir/quote.ts';
import { NO_CURE } from './shell-evaluation.ts';
import type { Heredoc } from './shell-heredoc.ts';
import { findHeredocEnd, HOLE, textAroundHoles } from './shell-heredoc.ts';
import type { HoleContext, Refusal, Scan } from './shell-scan.ts';
import {
  DEPTH_MAX,
  nested,
  expansion,
  holesSince,
  inner,
  giveUp,
  giveUpAtJoint,
  place,
  refuse,
  refuseFound,
} from './shell-scan.ts';

/** Context of a `$` or a backtick: decides what quotes mean inside `${…}`. */
type Around = 'bare' | 'double' | 'heredoc' | 'arithmetic';

// ── Quotes and expansions ───────────────────────────────────────────────────────────────────────────────────────────

/** At the opening '. Returns the quoted text. */
export function readSingle(s: Scan): string {
  s.at += 1;
  const from = s.at;
  while (s.at < s.text.length) {
    const character = s.text[s.at];
    if (character === HOLE) place(s, { kind: 'single' });
    else {
      s.at += 1;
      if (character === "'") return s.text.slice(from, s.at - 1);
    }
  }
  giveUp(s, "it stands within or after a ' that is never closed");
  return '';
}

/** At the opening ". Returns the quoted text, as text of a word. */
export function readDouble(s: Scan): string {
  let text = '';
  s.at += 1;
  while (s.at < s.text.length) {
    const character = s.text[s.at] ?? '';
    const from = s.found.length;
    switch (character) {
      case '"':
        s.at += 1;
        return text;
      case HOLE:
        place(s, { kind: 'double' });
        text += HOLE;
        break;
      case '\\':
        text += readBackslash(s);
        break;
      case '$':
        readDollar(s, 'double');
        text += expansion(s, from);
        break;
      case '`':
        readBackticks(s, 'double');
        text += expansion(s, from);
        break;
      default:
        s.at += 1;
        text += character;
    }
  }
  giveUp(s, 'it stands within or after a " that is never closed');
  return text;
}

/** At a `$`; reads its whole expansion. */
export function readDollar(s: Scan, around: Around): void {
  const next = s.text[s.at + 1];
  if (s.text.startsWith('$((', s.at)) {
    s.at += 3;
    nested(s, readArithmetic);
  } else if (next === '(') {
    s.at += 2;
    giveUpAtJoint(s);
    nested(
      s,
      (nested) => {
        s.readCommands(nested, ')');
      },
      'own',
    );
  } else if (next === '{') {
    nested(s, (nested) => {
      readBraces(nested, around);
    });
  } else if (next === '[')
    giveUp(s, 'it stands within or after $[…], which shells read differently', 'Write $((…)) instead.');
  else if (next === "'" && around === 'bare') readAnsiQuotes(s);
  else if (next === HOLE) {
    s.at += 1;
    refuse(s, { reason: 'the $ before it would make an expansion of its value', hint: null });
  } else {
    const name = /\$(?:[A-Za-z_]\w*|\d|[?#@*!$-])?/y;
    name.lastIndex = s.at;
    const text = name.exec(s.text)?.[0] ?? '$';
    s.at += text.length;
    giveUpAtJoint(s);
    if (/\w$/.test(text) && s.text[s.at] === HOLE) {
      refuse(s, {
        reason: `its value would be read as part of the name ${text}; write \${${text.slice(1)}} there`,
        hint: null,
      });
    }
  }
}

/** At `$'`, which bash reads as a string with escapes, and dash as a dollar and a plain string. */
function readAnsiQuotes(s: Scan): void {
  const why = "it is inside $'…', which shells read differently";
  s.at += 2;
  while (s.at < s.text.length) {
    const character = s.text[s.at];
    if (character === HOLE) refuse(s, { reason: why, hint: null });
    else if (character === '\\' && s.text[s.at + 1] === "'")
      return giveUp(s, "it stands after a $'…' that shells read differently");
    else {
      s.at += 1;
      if (character === "'") return;
    }
  }
  giveUp(s, why);
}

/** At `${`. */
function readBraces(s: Scan, around: Around): void {
  const first = s.found.length;
  const head = /\$\{(?:#|!)?(?:[A-Za-z_]\w*|\d+|[@*#?$!-])?(:?[-=?+]|##?|%%?)?/y;
  head.lastIndex = s.at;
  const matched = head.exec(s.text);
  const operator = matched?.[1] ?? '';
  const isPattern = /^[#%]/.test(operator);
  s.at += matched?.[0].length ?? 2;
  const untold = operator === '' && /[[:]/.test(s.text[s.at] ?? '') ? CALCULATED : UNTOLD;
  while (s.at < s.text.length) {
    switch (s.text[s.at]) {
      case '}':
        s.at += 1;
        // Even quoted ones: quotes do not help in bash arithmetic.
        if (operator === '') for (const hole of holesSince(s, first)) refuseFound(s, hole, untold);
        return;
      case HOLE:
        readBracesHole(s, around, operator, untold);
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
        else giveUp(s, "it stands within or after a ' within ${…}, which shells read differently");
        break;
      case '"':
        if (around === 'bare') readDouble(s);
        else if (around === 'double') readInnerDouble(s, isPattern);
        else giveUp(s, 'it stands within or after quotes within ${…}, which shells read differently there');
        break;
      default:
        s.at += 1;
    }
  }
  giveUp(s, 'it stands within or after a ${ that is never closed');
}

const UNTOLD: Refusal = {
  reason: 'it stands within ${…} where its value could not be told from the text around it',
  hint: null,
};

/** `${x[…]}`, `${x:…}`. */
const CALCULATED: Refusal = { reason: 'bash calculates there, and evaluates the names that it finds', hint: NO_CURE };

function readBracesHole(s: Scan, around: Around, operator: string, untold: Refusal): void {
  if (operator === '') refuse(s, untold);
  else if (around === 'arithmetic') place(s, { kind: 'integer' });
  else if (around === 'bare') place(s, { kind: 'quoted' });
  else if (around === 'double' && /[-=?+]$/.test(operator)) place(s, { kind: 'double-braced' });
  else refuse(s, untold);
}

/**
 * At a " inside "${…}". Shells agree on its end if it contains no brace or is in a pattern, but not on the meaning of a
 * value in it.
 */
function readInnerDouble(s: Scan, isPattern: boolean): void {
  const start = s.at;
  const first = s.found.length;
  readDouble(s);
  if (!isPattern && s.text.slice(start, s.at).includes('}'))
    return giveUp(s, 'it stands within or after quotes within "${…}"');
  for (let hole = first; hole < s.found.length; hole++) {
    s.found[hole] = { kind: 'refused', reason: 'it stands within quotes within "${…}"', hint: null };
  }
}

/** After `$((` or `((`. */
export function readArithmetic(s: Scan): void {
  let brackets = 0;
  let quoted = false;
  while (s.at < s.text.length) {
    const character = s.text[s.at];
    const odd = character === "'" || (quoted && (character === '(' || character === ')'));
    if (odd) return giveUp(s, 'it stands within or after quotes in $((…))');
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
        } else return giveUp(s, 'it stands after a (( that could be two brackets; put a space between them');
        break;
      default:
        s.at += 1;
    }
  }
  giveUp(s, 'it stands within or after a (( that is never closed');
}

/**
 * At the opening backtick. The shell takes the text up to the next unescaped one, removes one level of backslashes, and
 * reads the rest as a script.
 */
export function readBackticks(s: Scan, around: Around): void {
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
    if (next === HOLE) return giveUp(s, 'it stands behind a backslash within backticks');
    const removed = '$`\\'.includes(next) || (next === '"' && around === 'double');
    if (next === '"' && around === 'heredoc')
      return giveUp(s, 'it stands after a \\" within backticks of a here-document');
    script += removed && next !== '' ? next : `\\${next}`;
    at += 2;
  }
  if (at >= s.text.length) return giveUp(s, 'it stands within or after a ` that is never closed');
  s.at = at + 1;
  if (s.depth >= DEPTH_MAX) return giveUp(s, 'it stands too deep in the script');
  const nested = inner(s, script, [{ kind: 'backtick' }, ...s.around]);
  s.readCommands(nested, null);
  if (nested.lost !== null) giveUp(s, nested.lost.reason, nested.lost.hint);
}

/** At a backslash outside of single quotes. Returns the escaped character; a line end disappears. */
export function readBackslash(s: Scan): string {
  s.at += 1;
  const escaped = s.text[s.at] ?? '';
  if (s.text[s.at] === HOLE)
    refuse(s, { reason: 'the backslash before it would escape a part of its value', hint: null });
  else s.at += 1;
  return escaped === '\n' ? '' : escaped;
}

// ── Here-documents ──────────────────────────────────────────────────────────────────────────────────────────────────

/** At the start of the body's first line; reads past the delimiter's line. */
export function readHeredoc(s: Scan, heredoc: Heredoc): void {
  const end = findHeredocEnd(s.text, s.at, heredoc);
  if (end === null)
    return giveUp(s, `it stands in or after a here-document without its last line, ${heredoc.delimiter}`);
  readHeredocBody(s, heredoc, s.text.slice(s.at, end.body));
  if (s.lost === null) s.at = end.next;
}

function readHeredocBody(s: Scan, heredoc: Heredoc, body: string): void {
  const { delimiter, raw, tabs } = heredoc;
  // The body needs the escaping of its kind; a $(…) inside it must only keep the lines intact.
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
  if (nested.lost !== null) return giveUp(s, nested.lost.reason, nested.lost.hint);
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
