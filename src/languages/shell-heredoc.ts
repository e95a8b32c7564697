// Here-documents as lines of text: the delimiter, the end, and the text around each placeholder. Anything unusual is
// null, for the caller to refuse.

import { endsEarly, type HeredocPlace } from '../ir/quote.ts';

/** Stands for a {{…}}; scripts contain no other NUL. */
export const HOLE = '\0';

export interface Heredoc {
  readonly delimiter: string;
  /** The delimiter is quoted, so the body is literal. */
  readonly raw: boolean;
  /** `<<-` removes leading tabs. */
  readonly tabs: 'kept' | 'stripped';
}

/** The word after `<<`. */
export function readDelimiter(
  text: string,
  start: number,
): { readonly delimiter: string; readonly raw: boolean; readonly end: number } | null {
  const part = /'([^'\n\0]*)'|"([^"\n\0\\$`]*)"|\\([^\n\0])|([^\s;&|<>()'"\\$`\0]+)/y;
  let delimiter = '';
  let raw = false;
  let end = start;
  while (text[end] === ' ' || text[end] === '\t') end += 1;
  const first = end;
  for (;;) {
    part.lastIndex = end;
    const matched = part.exec(text);
    if (matched === null) break;
    const [, single, double, escaped, plain] = matched;
    delimiter += single ?? double ?? escaped ?? plain ?? '';
    raw ||= plain === undefined;
    end = part.lastIndex;
  }
  const next = text[end];
  const isWhole = next === undefined || ' \t\n;&|<>()'.includes(next);
  return end > first && isWhole ? { delimiter, raw, end } : null;
}

/** The end of the body that starts here, and the start of the script after the delimiter's line. */
export function findHeredocEnd(
  text: string,
  start: number,
  { delimiter, raw, tabs }: Heredoc,
): { readonly body: number; readonly next: number } | null {
  let lineStart = start;
  while (lineStart < text.length) {
    const found = text.indexOf('\n', lineStart);
    const lineEnd = found === -1 ? text.length : found;
    const line = text.slice(lineStart, lineEnd);
    const shown = tabs === 'stripped' ? line.replace(/^\t+/, '') : line;
    if (endsEarly(shown, delimiter)) return null;
    if (shown === delimiter) {
      if (!raw && isJoined(text, start, lineStart)) return null;
      return { body: lineStart, next: Math.min(lineEnd + 1, text.length) };
    }
    lineStart = lineEnd + 1;
  }
  return null;
}

type Surroundings = Pick<HeredocPlace, 'lead' | 'tail'>;

/** Text before and after each placeholder on its line; null if values could form the delimiter. */
export function textAroundHoles(body: string, { delimiter, raw, tabs }: Heredoc): readonly (Surroundings | null)[] {
  const holes: (Surroundings | null)[] = [];
  let lineStart = 0;
  for (const line of body.split('\n')) {
    const lineEnd = lineStart + line.length;
    const joined = !raw && (isJoined(body, 0, lineStart) || isJoined(body, 0, lineEnd + 1));
    const texts = line.split(HOLE);
    const between = texts.slice(1, -1).some((text) => delimiter.includes(text));
    for (const [index, before] of texts.slice(0, -1).entries()) {
      const lead = index === 0 && tabs === 'stripped' ? before.replace(/^\t+/, '') : before;
      const isStart = delimiter.startsWith(lead) || lead.startsWith(delimiter);
      // Another value of the line may contain a bracket.
      const rest = texts.slice(index + 1).join(')');
      const tail = rest.slice(0, delimiter.length + 1) + (rest.slice(delimiter.length + 1).includes(')') ? ')' : '');
      holes.push(joined || between ? null : { lead: isStart ? lead.slice(0, delimiter.length + 1) : null, tail });
    }
    lineStart = lineEnd + 1;
  }
  return holes;
}

/** Whether the line continues the previous one, which ends in a backslash. */
function isJoined(text: string, start: number, lineStart: number): boolean {
  let backslashes = 0;
  while (lineStart - 2 - backslashes >= start && text[lineStart - 2 - backslashes] === '\\') backslashes += 1;
  return backslashes % 2 === 1;
}
