// The tags by which an answer says what follows it: `<goto>REVIEW.md</goto>`. Finds them in any text, and says nothing of
// what they mean (answer-transitions.ts does).
//
//   - Names are lower case and whole: `<resulting>` is no tag. Attributes are quoted, singly or doubly; nothing is decoded.
//   - Between the two ends of `result`, `ask` and `print` stands whatever was meant, other tags included; an end belongs to
//     the nearest beginning before it. Between those of the others stands a name, without any `<`.
//   - A beginning without its end is no tag.
//   - What stands in code is text, if a transition stands outside of code; else it counts, for answers are often fenced.
//
// It takes time in proportion to the text, whatever the text is, and fails at none.

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
/** `print` shows something to whoever watches, and moves nothing. */
export type TagName = TransitionTag | 'print';

export interface Tag {
  readonly name: TagName;
  readonly attributes: Readonly<Record<string, string>>;
  /** Between its ends, as it is. */
  readonly content: string;
  /** Offsets in the text, both ends included. */
  readonly from: number;
  readonly to: number;
  /** What is wrong with its attributes, as a sentence; null where nothing is. */
  readonly error: string | null;
}

export interface TagReading {
  readonly tags: readonly Tag[];
  /** Names of those that begin, and have no end. */
  readonly unclosed: readonly TagName[];
}

/** The tags that count in an answer. */
export function readTags(text: string): TagReading {
  const marks = marksIn(text);
  const outside = tagsFrom(text, outsideCode(text, marks));
  return outside.tags.some(({ name }) => name !== 'print') ? outside : tagsFrom(text, marks);
}

/** All tags, in code or not: for whoever reads what an author tells an agent to say. */
export function allTags(text: string): readonly Tag[] {
  return tagsFrom(text, marksIn(text)).tags;
}

/** A name that is known as one of a tag; null where it is none. */
export function asTransitionTag(name: string): TransitionTag | null {
  return TRANSITION_TAGS.find((tag) => tag === name) ?? null;
}

type TagMark = OpeningTag | ClosingTag;

interface OpeningTag {
  readonly kind: 'opening';
  readonly name: TagName;
  readonly from: number;
  /** After its `>`. */
  readonly to: number;
  readonly attributes: Readonly<Record<string, string>>;
  readonly error: string | null;
}

interface ClosingTag {
  readonly kind: 'closing';
  readonly name: TagName;
  readonly from: number;
  readonly to: number;
}

const NAMES: ReadonlySet<string> = new Set<TagName>([...TRANSITION_TAGS, 'print']);
/** What they hold is said, and not a name. */
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

/** An mark belongs to the nearest beginning of its name that has none yet. */
function freeTextPairs(marks: readonly TagMark[]): ReadonlyMap<TagMark, ClosingTag> {
  const open = new Map<TagName, OpeningTag[]>();
  const pairs = new Map<TagMark, ClosingTag>();
  for (const mark of marks) {
    if (!FREE_TEXT_TAGS.has(mark.name)) continue;
    const waiting = open.get(mark.name) ?? [];
    open.set(mark.name, waiting);
    if (mark.kind === 'opening') waiting.push(mark);
    else {
      const opened = waiting.pop();
      if (opened !== undefined) pairs.set(opened, mark);
    }
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

/** Null where no `>` comes before the next `<`. */
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

/** Those that stand in no code. */
function outsideCode(text: string, marks: readonly TagMark[]): readonly TagMark[] {
  const code = marks.length === 0 ? [] : codeIn(text);
  let next = 0;
  return marks.filter(({ from }) => {
    while (next < code.length && (code[next]?.to ?? 0) <= from) next += 1;
    const span = code[next];
    return span === undefined || from < span.from;
  });
}

interface Span {
  readonly from: number;
  readonly to: number;
}

/** Fenced blocks and code spans, in the order of the text. A fence that is not closed goes on to the end. */
function codeIn(text: string): readonly Span[] {
  const code: Span[] = [];
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

/** ``` or ~~~, also where it stands in a quotation or begins an item of a list. */
function fenceOf(line: string): { readonly marks: string; readonly info: string } | null {
  const inner = line.replace(/^[\s>]+/, '').replace(/^(?:[-*+]|\d{1,9}[.)])\s+/, '');
  const [marks] = /^(?:`{3,}|~{3,})/.exec(inner) ?? [];
  if (marks === undefined) return null;
  const info = inner.slice(marks.length).trim();
  return marks.startsWith('`') && info.includes('`') ? null : { marks, info };
}

/** Within a paragraph: between two runs of as many backticks. */
function codeSpans(text: string, from: number, to: number): readonly Span[] {
  const runs: { readonly from: number; readonly to: number; readonly escaped: boolean }[] = [];
  for (const { 0: run, index } of text.slice(from, to).matchAll(/(?<!`)`+/g)) {
    const at = from + index;
    runs.push({ from: at, to: at + run.length, escaped: isEscaped(text, at) });
  }
  const ofLength = new Map<number, number[]>();
  for (const [index, run] of runs.entries()) {
    const length = run.to - run.from;
    const known = ofLength.get(length);
    if (known === undefined) ofLength.set(length, [index]);
    else known.push(index);
  }
  const spans: Span[] = [];
  for (let index = 0; index < runs.length; index++) {
    const run = runs[index];
    if (run === undefined) continue;
    const start = run.escaped ? run.from + 1 : run.from;
    const closing = firstAfter(ofLength.get(run.to - start) ?? [], index);
    const closed = closing === undefined ? undefined : runs[closing];
    if (closing === undefined || closed === undefined) continue;
    spans.push({ from: start, to: closed.to });
    index = closing;
  }
  return spans;
}

/** By an odd number of backslashes before it. */
function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text[at - 1 - slashes] === '\\') slashes += 1;
  return slashes % 2 === 1;
}

/** The first of a sorted list that is greater. */
function firstAfter(sorted: readonly number[], than: number): number | undefined {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) <= than) low = middle + 1;
    else high = middle;
  }
  return sorted[low];
}
