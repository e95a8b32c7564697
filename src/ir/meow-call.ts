// Commands that consist of one call of `meow` which the engine itself answers: a gate, an event, the status of a step.
// A longer script is not such a call, whatever it contains.

import { parseDuration } from '../base/time.ts';

interface CallOutput {
  /** Its output goes to a file, or its input comes from one. */
  readonly usesFiles: boolean;
  /** The output that the call throws away: redirected to /dev/null. */
  readonly discards: readonly ('stdout' | 'stderr')[];
}

interface WaitingCall extends CallOutput {
  /** As it is written; null if it waits without a limit. */
  readonly timeout: string | null;
  /** Null if there is none, or it is not a duration. */
  readonly timeoutMs: number | null;
  /** It has a valid timeout. */
  readonly expires: boolean;
}

export type MeowCall =
  | (WaitingCall &
      Readonly<{ kind: 'await-approval'; gate: string; prompt: string | null; approvers: readonly string[] }>)
  | (WaitingCall &
      Readonly<{ kind: 'await-event'; type: string; filter: Readonly<Record<string, string>>; json: boolean }>)
  | (CallOutput & Readonly<{ kind: 'event'; type: string; data: Readonly<Record<string, string>> }>)
  | (CallOutput & Readonly<{ kind: 'step-status'; step: string; is: string | null; isNot: string | null }>);

/** Null if the script does anything else. */
export function meowCallOf(script: string): MeowCall | null {
  const { text, ...output } = withoutRedirections(script);
  const words = shellWords(text);
  if (words === null) return null;
  const [program, command, ...rest] = words[0] === 'exec' ? words.slice(1) : words;
  if (program !== 'meow') return null;
  const given = flagsOf(rest);
  const [subject] = given?.words ?? [];
  if (given === null || subject === undefined || given.words.length !== 1) return null;
  const timeout = given.last('timeout');
  const timeoutMs = timeout === null ? null : parseDuration(timeout);
  const waiting = { timeout, timeoutMs, expires: timeoutMs !== null, ...output };
  switch (command) {
    case 'await-approval': {
      return {
        kind: command,
        gate: subject,
        prompt: given.last('prompt'),
        approvers: given.all('approver'),
        ...waiting,
      };
    }
    case 'await-event':
      return {
        kind: command,
        type: subject,
        filter: pairsOf(given.all('filter')),
        json: given.has('json'),
        ...waiting,
      };
    case 'event':
      return { kind: command, type: subject, data: pairsOf(given.all('data')), ...output };
    case 'step-status':
      return { kind: command, step: subject, is: given.last('is'), isNot: given.last('is-not'), ...output };
    default:
      return null;
  }
}

function withoutRedirections(script: string): CallOutput & { readonly text: string } {
  const discards = new Set<'stdout' | 'stderr'>();
  const visible = script.replaceAll(
    /\s([12])?(?:>>?\s*\/dev\/null|>&[12])(?=\s|$)|\s0?<\s*\/dev\/null(?=\s|$)/g,
    (redirection: string, stream?: string) => {
      const name = stream === '2' ? 'stderr' : 'stdout';
      const target = /&([12])$/.exec(redirection)?.[1];
      const isDiscarded = target === undefined || discards.has(target === '2' ? 'stderr' : 'stdout');
      if (isDiscarded && !redirection.includes('<')) discards.add(name);
      return ' ';
    },
  );
  const text = visible.replaceAll(/\s\d?(?:>>?|<)\s*[\w./-]+(?=\s|$)/g, ' ');
  return { text, usesFiles: text !== visible, discards: [...discards] };
}

/** The words of a simple command; null if a shell would do more than split it into words. */
export function shellWords(script: string): readonly string[] | null {
  const words: string[] = [];
  let word: string | null = null;
  const text = script.trim().replaceAll('\\\n', '');
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === "'") {
      const end = text.indexOf("'", at + 1);
      if (end < 0) return null;
      word = `${word ?? ''}${text.slice(at + 1, end)}`;
      at = end;
    } else if (char === '"') {
      const [whole, inside] = /^"((?:[^"\\$`]|\\.)*)"/s.exec(text.slice(at)) ?? [];
      if (whole === undefined || inside === undefined) return null;
      word = `${word ?? ''}${inside.replaceAll(/\\(["\\$`])/g, '$1')}`;
      at += whole.length - 1;
    } else if (char === '\\') {
      word = `${word ?? ''}${text.charAt(at + 1)}`;
      at += 1;
    } else if (/[ \t]/.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else if (/[\n;&|<>()$`*?[\]]/.test(char) || (word === null && /[#~!]/.test(char))) {
      return null;
    } else {
      word = `${word ?? ''}${char}`;
    }
  }
  if (word !== null) words.push(word);
  return words[0] === '{' ? null : words;
}

interface CallFlags {
  readonly words: readonly string[];
  has(name: string): boolean;
  last(name: string): string | null;
  all(name: string): readonly string[];
}

/** All flags of these calls but `--json` have a value. Null if one is missing. */
function flagsOf(rest: readonly string[]): CallFlags | null {
  const words: string[] = [];
  const values: (readonly [string, string])[] = [];
  for (let at = 0; at < rest.length; at++) {
    const [, name, value] = /^--([a-z-]+)(?:=(.*))?$/s.exec(rest[at] ?? '') ?? [];
    if (name === undefined) {
      words.push(rest[at] ?? '');
      continue;
    }
    const found = value ?? (name === 'json' ? '' : rest[++at]);
    if (found === undefined) return null;
    values.push([name, found]);
  }
  const all = (wanted: string): readonly string[] =>
    values.flatMap(([name, value]) => (name === wanted ? [value] : []));
  return { words, all, has: (name) => all(name).length > 0, last: (wanted) => all(wanted).at(-1) ?? null };
}

function pairsOf(texts: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    texts.map((text) => {
      const at = text.indexOf('=');
      return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
    }),
  );
}
