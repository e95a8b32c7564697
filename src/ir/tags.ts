// The tags by which an answer says what follows it: `<goto>REVIEW.md</goto>`. Finds them in any text, and says nothing of
// what they mean (steering.ts does).
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
  readonly fault: string | null;
}

export interface TagReading {
  readonly tags: readonly Tag[];
  /** Names of those that begin, and have no end. */
  readonly unclosed: readonly TagName[];
}

/** The tags that count in an answer. */
export function readTags(text: string): TagReading {
  const ends = endsIn(text);
  const outside = tagsFrom(text, outsideCode(text, ends));
  return outside.tags.some(({ name }) => name !== 'print') ? outside : tagsFrom(text, ends);
}

/** All tags, in code or not: for whoever reads what an author tells an agent to say. */
export function everyTag(text: string): readonly Tag[] {
  return tagsFrom(text, endsIn(text)).tags;
}

/** A name that is known as one of a tag; null where it is none. */
export function asTransitionTag(name: string): TransitionTag | null {
  return TRANSITION_TAGS.find((tag) => tag === name) ?? null;
}

type End = Beginning | Ending;

interface Beginning {
  readonly kind: 'beginning';
  readonly name: TagName;
  readonly from: number;
  /** After its `>`. */
  readonly to: number;
  readonly attributes: Readonly<Record<string, string>>;
  readonly fault: string | null;
}

interface Ending {
  readonly kind: 'ending';
  readonly name: TagName;
  readonly from: number;
  readonly to: number;
}

const NAMES: ReadonlySet<string> = new Set<TagName>([...TRANSITION_TAGS, 'print']);
/** What they hold is said, and not a name. */
const SPEAKING: ReadonlySet<TagName> = new Set<TagName>(['result', 'ask', 'print']);

function tagsFrom(text: string, ends: readonly End[]): TagReading {
  const endingOf = speakingPairs(ends);
  const tags: Tag[] = [];
  const unclosed: TagName[] = [];
  let past = 0;
  for (const [index, end] of ends.entries()) {
    if (end.kind === 'ending' || end.from < past) continue;
    const { name, from, attributes, fault } = end;
    const ending = SPEAKING.has(name) ? endingOf.get(end) : endingAfter(text, end, ends[index + 1]);
    if (ending === undefined) {
      unclosed.push(name);
      continue;
    }
    past = ending.to;
    tags.push({ name, attributes, content: text.slice(end.to, ending.from), from, to: past, fault });
  }
  return { tags, unclosed };
}

/** An end belongs to the nearest beginning of its name that has none yet. */
function speakingPairs(ends: readonly End[]): ReadonlyMap<End, Ending> {
  const open = new Map<TagName, Beginning[]>();
  const pairs = new Map<End, Ending>();
  for (const end of ends) {
    if (!SPEAKING.has(end.name)) continue;
    const waiting = open.get(end.name) ?? [];
    open.set(end.name, waiting);
    if (end.kind === 'beginning') waiting.push(end);
    else {
      const begun = waiting.pop();
      if (begun !== undefined) pairs.set(begun, end);
    }
  }
  return pairs;
}

function endingAfter(text: string, begun: Beginning, next: End | undefined): Ending | undefined {
  if (next?.kind !== 'ending' || next.name !== begun.name) return undefined;
  return text.indexOf('<', begun.to) === next.from ? next : undefined;
}

function endsIn(text: string): readonly End[] {
  const ends: End[] = [];
  for (let at = text.indexOf('<'); at !== -1; ) {
    const end = endAt(text, at);
    if (end !== null) ends.push(end);
    at = text.indexOf('<', end?.to ?? at + 1);
  }
  return ends;
}

function endAt(text: string, from: number): End | null {
  const [, slash, name = ''] = matchAt(/<(\/?)([a-z]+(?:-[a-z]+)*)(?=[\s>/])/y, text, from) ?? [];
  if (!isTagName(name)) return null;
  const after = from + 1 + (slash ?? '').length + name.length;
  if (slash === '') return beginningAt(text, name, from, after);
  const [closed] = matchAt(/\s*>/y, text, after) ?? [];
  return closed === undefined ? null : { kind: 'ending', name, from, to: after + closed.length };
}

function isTagName(name: string): name is TagName {
  return NAMES.has(name);
}

const ATTRIBUTE = /\s+([A-Za-z_][\w-]*)\s*=\s*(?:"([^"]*)"|'([^']*)')/y;

/** Null where no `>` comes before the next `<`. */
function beginningAt(text: string, name: TagName, from: number, after: number): Beginning | null {
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
  const fault =
    rest.trim() !== '>'
      ? `the attributes of <${name}> cannot be read: each is written name="value"`
      : twice === null
        ? null
        : `<${name}> has the attribute ${twice} twice`;
  return { kind: 'beginning', name, from, to: at + rest.length, attributes: Object.fromEntries(attributes), fault };
}

function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** Those that stand in no code. */
function outsideCode(text: string, ends: readonly End[]): readonly End[] {
  const code = ends.length === 0 ? [] : codeIn(text);
  let next = 0;
  return ends.filter(({ from }) => {
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
