// Finds the transition tags in an answer, such as `<goto>REVIEW.md</goto>`. answer-transitions.ts interprets them.
//
//   - Names are lower case and complete: `<resulting>` is not a tag. Attributes have single or double quotes; nothing
//     is decoded.
//   - `result`, `ask` and `print` contain any text, even other tags; a closing tag belongs to the nearest opening one.
//     Other tags contain a name, without any `<`.
//   - An opening tag without its closing tag does not count.
//   - Tags inside code are plain text if a transition is outside of code; otherwise they count, since answers are often
//     fenced.
//
// Takes linear time, and never fails.

import type { Place } from '../base/source.ts';

export const TRANSITION_TAGS = [
  'goto',
  'reset',
  'call',
  'function',
  'fork',
  'result',
  'ask',
  'call-workflow',
  'function-workflow',
  'fork-workflow',
  'reset-workflow',
] as const;
export type TransitionTag = (typeof TRANSITION_TAGS)[number];
/** `print` shows a text to the user and is not a transition. */
export type TagName = TransitionTag | 'print';

/** Its place includes both tags. */
export interface Tag extends Place {
  readonly name: TagName;
  readonly attributes: Readonly<Record<string, string>>;
  /** The raw text between opening and closing tag. */
  readonly content: string;
  /** Error in its attributes, as a sentence; null if there is none. */
  readonly error: string | null;
}

/** `unclosed`: names of opening tags without a closing tag. */
export type TagReading = Readonly<{ tags: readonly Tag[]; unclosed: readonly TagName[] }>;

/** The tags that count in an answer. */
export function readTags(text: string): TagReading {
  const marks = marksIn(text);
  const outside = tagsFrom(text, outsideCode(text, marks));
  return outside.tags.some(({ name }) => name !== 'print') ? outside : tagsFrom(text, marks);
}

/** All tags, in code or not: for checking what an author tells an agent to write. */
export function allTags(text: string): readonly Tag[] {
  return tagsFrom(text, marksIn(text)).tags;
}

/** Null if it is not the name of a transition tag. */
export function asTransitionTag(name: string): TransitionTag | null {
  return TRANSITION_TAGS.find((tag) => tag === name) ?? null;
}

export function isFork(tag: TransitionTag): boolean {
  return tag === 'fork' || tag === 'fork-workflow';
}

type TagMark = OpeningTag | ClosingTag;

interface OpeningTag extends Omit<Tag, 'content'> {
  readonly kind: 'opening';
}

interface ClosingTag extends Place {
  readonly kind: 'closing';
  readonly name: TagName;
}

const NAMES: ReadonlySet<string> = new Set<TagName>([...TRANSITION_TAGS, 'print']);
/** Tags that contain free text instead of a name. */
const FREE_TEXT_TAGS: ReadonlySet<TagName> = new Set<TagName>(['result', 'ask', 'print']);

function tagsFrom(text: string, marks: readonly TagMark[]): TagReading {
  const closingOf = freeTextPairs(marks);
  const tags: Tag[] = [];
  const unclosed: TagName[] = [];
  let past = 0;
  for (const [index, mark] of marks.entries()) {
    if (mark.kind === 'closing' || mark.from < past) continue;
    const { name, from, attributes, error } = mark;
    const closing = FREE_TEXT_TAGS.has(name) ? closingOf.get(mark) : closingTagAfter(text, mark, marks[index + 1]);
    if (closing === undefined) {
      unclosed.push(name);
      continue;
    }
    past = closing.to;
    tags.push({ name, attributes, content: text.slice(mark.to, closing.from), from, to: past, error });
  }
  return { tags, unclosed };
}

/** A closing tag belongs to the nearest unclosed opening tag of its name. */
function freeTextPairs(marks: readonly TagMark[]): ReadonlyMap<TagMark, ClosingTag> {
  const open = new Map<TagName, OpeningTag[]>();
  const pairs = new Map<TagMark, ClosingTag>();
  for (const mark of marks) {
    if (!FREE_TEXT_TAGS.has(mark.name)) continue;
    const waiting = open.get(mark.name) ?? [];
    open.set(mark.name, waiting);
    const opened = mark.kind === 'closing' ? waiting.pop() : undefined;
    if (mark.kind === 'opening') waiting.push(mark);
    else if (opened !== undefined) pairs.set(opened, mark);
  }
  return pairs;
}

function closingTagAfter(text: string, opened: OpeningTag, next: TagMark | undefined): ClosingTag | undefined {
  if (next?.kind !== 'closing' || next.name !== opened.name) return undefined;
  return text.indexOf('<', opened.to) === next.from ? next : undefined;
}

function marksIn(text: string): readonly TagMark[] {
  const marks: TagMark[] = [];
  for (let at = text.indexOf('<'); at !== -1; ) {
    const mark = markAt(text, at);
    if (mark !== null) marks.push(mark);
    at = text.indexOf('<', mark?.to ?? at + 1);
  }
  return marks;
}

function markAt(text: string, from: number): TagMark | null {
  const [, slash, name = ''] = matchAt(/<(\/?)([a-z]+(?:-[a-z]+)*)(?=[\s>/])/y, text, from) ?? [];
  if (!isTagName(name)) return null;
  const after = from + 1 + (slash ?? '').length + name.length;
  if (slash === '') return openingTagAt(text, name, from, after);
  const [closed] = matchAt(/\s*>/y, text, after) ?? [];
  return closed === undefined ? null : { kind: 'closing', name, from, to: after + closed.length };
}

function isTagName(name: string): name is TagName {
  return NAMES.has(name);
}

const ATTRIBUTE = /\s+([A-Za-z_][\w-]*)\s*=\s*(?:"([^"]*)"|'([^']*)')/y;

/** Null if no `>` comes before the next `<`. */
function openingTagAt(text: string, name: TagName, from: number, after: number): OpeningTag | null {
  const attributes = new Map<string, string>();
  let twice: string | null = null;
  let at = after;
  for (let found = matchAt(ATTRIBUTE, text, at); found !== null; found = matchAt(ATTRIBUTE, text, at)) {
    const [whole, key = '', double, single] = found;
    if (attributes.has(key)) twice ??= key;
    attributes.set(key, double ?? single ?? '');
    at += whole.length;
  }
  const [rest] = matchAt(/[^<>]*>/y, text, at) ?? [];
  if (rest === undefined) return null;
  const error =
    rest.trim() !== '>'
      ? `the attributes of <${name}> cannot be read: each is written name="value"`
      : twice === null
        ? null
        : `<${name}> has the attribute ${twice} twice`;
  return { kind: 'opening', name, from, to: at + rest.length, attributes: Object.fromEntries(attributes), error };
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function outsideCode(text: string, marks: readonly TagMark[]): readonly TagMark[] {
  const code = marks.length === 0 ? [] : codeIn(text);
  let next = 0;
  return marks.filter(({ from }) => {
    while (next < code.length && (code[next]?.to ?? 0) <= from) next += 1;
    const span = code[next];
    return span === undefined || from < span.from;
  });
}

/** Fenced blocks and code spans, in text order. An unclosed fence extends to the end. */
function codeIn(text: string): readonly Place[] {
  const code: Place[] = [];
  let fence: { readonly from: number; readonly marks: string } | null = null;
  let paragraph: number | null = null;
  const endParagraph = (at: number): void => {
    if (paragraph !== null) for (const span of codeSpans(text, paragraph, at)) code.push(span);
    paragraph = null;
  };
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf('\n', start);
    const next = newline === -1 ? text.length : newline + 1;
    const line = text.slice(start, next).trimEnd();
    const marks = fenceOf(line);
    if (fence !== null) {
      const { from, marks: opened } = fence;
      if (marks?.info === '' && marks.marks.startsWith(opened)) {
        code.push({ from, to: next });
        fence = null;
      }
    } else if (marks !== null) {
      endParagraph(start);
      fence = { from: start, marks: marks.marks };
    } else if (line === '') endParagraph(start);
    else paragraph ??= start;
    start = next;
  }
  if (fence !== null) code.push({ from: fence.from, to: text.length });
  endParagraph(text.length);
  return code;
}

/** ``` or ~~~, also inside a quotation or at the start of a list item. */
function fenceOf(line: string): { readonly marks: string; readonly info: string } | null {
  const inner = line.replace(/^[\s>]+/, '').replace(/^(?:[-*+]|\d{1,9}[.)])\s+/, '');
  const [marks] = /^(?:`{3,}|~{3,})/.exec(inner) ?? [];
  if (marks === undefined) return null;
  const info = inner.slice(marks.length).trim();
  return marks.startsWith('`') && info.includes('`') ? null : { marks, info };
}

/** Inside a paragraph, between two equal runs of backticks. */
function codeSpans(text: string, from: number, to: number): readonly Place[] {
  const runs = [...text.slice(from, to).matchAll(/(?<!`)`+/g)].map(({ 0: run, index }) => {
    const at = from + index;
    // A backslash takes one backtick from an opening run.
    return { from: at, start: isEscaped(text, at) ? at + 1 : at, to: at + run.length };
  });
  const nextOfLength = new Map<number, Place>();
  const closings = runs.toReversed().map((run) => {
    const closing = nextOfLength.get(run.to - run.start);
    nextOfLength.set(run.to - run.from, run);
    return closing;
  });
  const spans: Place[] = [];
  let past = from;
  for (const run of runs) {
    const closing = closings.pop();
    if (closing === undefined || run.from < past) continue;
    spans.push({ from: run.start, to: closing.to });
    past = closing.to;
  }
  return spans;
}

/** After an odd number of backslashes. */
function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text[at - 1 - slashes] === '\\') slashes += 1;
  return slashes % 2 === 1;
}
