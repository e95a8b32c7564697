// Finds the shell context of each {{…}} in a script, and so how its value must be quoted. The script is read like POSIX
// sh, as far as quoting goes: words, quotes, expansions, here-documents, comments, `case` patterns; and like bash where
// bash evaluates words without their quotes.
//
//   - A placeholder is a NUL character here; scripts contain no others.
//   - A position is accepted only if dash and bash agree on it. Otherwise the placeholder is refused with a reason; so
//     it is in a malformed script, or if even a quoted value would change the meaning of the text around it. A wrong
//     answer would let a value become code; a refusal costs the author one line.
//   - If the reader loses track, it may have lost it earlier than it noticed: then every placeholder is refused.

import type { Word } from './shell-evaluation.ts';
import {
  arrayBefore,
  DYNAMIC,
  hasOpenSubscript,
  isAssignment,
  judgeAssignment,
  judgeCommand,
  judgeCondition,
  judgeDescriptor,
  judgeDuplicate,
  judgeElement,
  NO_CURE,
} from './shell-evaluation.ts';
import type { Heredoc } from './shell-heredoc.ts';
import { HOLE, readDelimiter } from './shell-heredoc.ts';
import {
  readArithmetic,
  readBackslash,
  readBackticks,
  readDollar,
  readDouble,
  readHeredoc,
  readSingle,
} from './shell-quotes.ts';
import type { HoleContext, Scan } from './shell-scan.ts';
import { apply, expansion, holesSince, giveUp, giveUpAtJoint, place, resultsOf } from './shell-scan.ts';

/** One context per placeholder, in text order. */
export function shellContexts(script: string): readonly HoleContext[] {
  const scan: Scan = {
    text: script,
    at: 0,
    around: [],
    found: [],
    scripts: [],
    script: 0,
    declared: new Map(),
    arrays: new Set(),
    depth: 0,
    lost: null,
    readCommands,
  };
  readCommands(scan, null);
  return resultsOf(scan);
}

/** Reserved words before another command. */
const BEFORE_COMMAND = new Set(['if', 'then', 'else', 'elif', 'while', 'until', 'do', '!', '{', 'time']);
/** Words after which such a reserved word may follow at once: `if { …; } then`. */
const AFTER_COMMAND = new Set(['}', 'fi', 'done']);

/** Other reserved words at the start of a command. */
const RESERVED: ReadonlySet<string> = new Set([
  ...BEFORE_COMMAND,
  ...AFTER_COMMAND,
  'case',
  'coproc',
  'esac',
  'for',
  'function',
  'select',
  '[[',
]);

/** An open bracket, or an open `case` and its progress. */
type Open =
  | 'bracket'
  | 'array'
  | 'process'
  | 'pattern'
  | 'group'
  | 'case-subject'
  | 'case-in'
  | 'case-pattern'
  | 'case-body';

/** The current command. */
interface Command {
  /** Whether a command (or a pattern) may start at the next word. */
  first: boolean;
  /** Its words, without assignments and redirections. */
  words: Word[];
  /** The words of an open `[[ … ]]`. */
  condition: Word[] | null;
  /** An assignment or a redirection precedes its first word. */
  prefixed: boolean;
  /** Kind of redirection that the next word belongs to. */
  redirected: 'file' | 'duplicate' | null;
  /** A preceding reserved word that matters. */
  behind: 'time' | 'function' | null;
  /** The current word; null between words. */
  word: { text: string; holes: number[]; plain: boolean } | null;
}

const newCommand = (first: boolean): Command => ({
  first,
  words: [],
  condition: null,
  prefixed: false,
  redirected: null,
  behind: null,
  word: null,
});

function readCommands(s: Scan, close: ')' | null): void {
  new CommandReader(s, close).read();
}

/** Reads commands to the end of the text, or to the `)` that closes the script. */
class CommandReader {
  readonly #scan: Scan;
  readonly #close: ')' | null;
  readonly #open: Open[] = [];
  readonly #heredocs: Heredoc[] = [];
  #command = newCommand(true);
  /** Commands that continue after an array, a `<(…)` or a pattern like `!(…)` inside them. */
  readonly #interrupted: Command[] = [];

  constructor(scan: Scan, close: ')' | null) {
    this.#scan = scan;
    this.#close = close;
  }

  read(): void {
    const s = this.#scan;
    while (s.at < s.text.length) {
      if (this.#readNext(s.text[s.at] ?? '') !== 'closed') continue;
      if (this.#heredocs.length > 0) giveUp(s, 'a here-document begins on the last line of a $(…)');
      return;
    }
    this.#endCommand();
    if (this.#interrupted.length > 0) giveUp(s, 'it stands within or after a ( that is never closed');
    if (this.#close !== null) giveUp(s, 'it stands within or after a $( that is never closed');
  }

  #readNext(character: string): 'closed' | 'open' {
    const s = this.#scan;
    switch (character) {
      case HOLE:
        this.#readPart((part) => {
          readWordHole(part);
          return HOLE;
        });
        break;
      case "'":
        this.#readPart(readSingle);
        break;
      case '"':
        this.#readPart(readDouble);
        break;
      case '`':
        this.#readPart(ignoring((part) => readBackticks(part, 'bare')));
        break;
      case '$':
        this.#readPart(ignoring((part) => readDollar(part, 'bare')));
        break;
      case '\\':
        if (s.text[s.at + 1] === '\n') s.at += 2;
        else this.#readPart(readBackslash);
        break;
      case ' ':
      case '\t':
        this.#endWord();
        s.at += 1;
        break;
      case '\n':
        this.#readLineEnd();
        break;
      case '#':
        this.#readHash();
        break;
      case ';':
      case '&':
      case '|':
        this.#readSeparator(character);
        break;
      case '(':
        this.#openBracket();
        break;
      case ')':
        s.at += 1;
        return this.#closeBracket() ? 'closed' : 'open';
      case '<':
      case '>':
        this.#readAngle();
        break;
      default:
        this.#addPart(character, [], true);
        s.at += 1;
    }
    return 'open';
  }

  /** `text`: the part as text of the word. */
  #addPart(text: string, holes: readonly number[], plain: boolean): void {
    const command = this.#command;
    command.word ??= { text: '', holes: [], plain: true };
    command.word.text += text;
    command.word.holes.push(...holes);
    command.word.plain &&= plain;
  }

  /** A part that makes the word an ordinary one. */
  #readPart(read: (s: Scan) => string | undefined): void {
    const s = this.#scan;
    const from = s.at;
    const first = s.found.length;
    const text = read(s) ?? expansion(s, first);
    this.#addPart(text, holesSince(s, first), false);
    // Shells disagree on the line end after which the body of a here-document starts then.
    if (this.#heredocs.length > 0 && s.text.slice(from, s.at).includes('\n')) {
      giveUp(s, 'the line that begins a here-document goes on over a line end within quotes or brackets');
    }
  }

  #readLineEnd(): void {
    const s = this.#scan;
    if (this.#command.condition !== null || this.#open.at(-1) === 'array') this.#endWord();
    else this.#endCommand();
    s.at += 1;
    for (const heredoc of this.#heredocs.splice(0)) readHeredoc(s, heredoc);
  }

  #readHash(): void {
    const s = this.#scan;
    if (this.#command.word !== null) {
      this.#addPart('#', [], true);
      s.at += 1;
    } else if (this.#command.condition !== null || this.#open.includes('pattern')) {
      giveUp(s, 'it stands after a # within [[ … ]] or a pattern');
    } else readComment(s);
  }

  /** At ; & or |. */
  #readSeparator(character: string): void {
    const s = this.#scan;
    this.#endWord();
    const { condition } = this.#command;
    if (character === '&' && s.text[s.at + 1] === '>') {
      // bash: a redirection like > and 2>&1. The command continues after it.
      s.at += 1;
    } else if (condition !== null && character !== ';') {
      condition.push({ text: character, holes: [] });
      s.at += 1;
    } else if (condition !== null || this.#open.at(-1) === 'array') {
      giveUp(s, `it stands within or after [[ … ]] or an array with a ${character} in it`);
    } else {
      this.#endCommand();
      if (character === ';' && (s.text[s.at + 1] === ';' || s.text[s.at + 1] === '&')) this.#endCaseBody();
      else s.at += 1;
    }
  }

  /** At ;; ;& or ;;&. */
  #endCaseBody(): void {
    const s = this.#scan;
    if (this.#open.at(-1) === 'case-body') this.#open[this.#open.length - 1] = 'case-pattern';
    else giveUp(s, 'it stands after a ;; that belongs to no `case`');
    s.at += s.text.startsWith(';;&', s.at) ? 3 : 2;
  }

  /** At < or >. */
  #readAngle(): void {
    const s = this.#scan;
    const command = this.#command;
    const isProcess = s.text[s.at + 1] === '(';
    if (!isProcess) {
      const descriptor = command.word === null || command.condition !== null ? null : judgeDescriptor(command.word);
      if (descriptor !== null) {
        command.word = null;
        apply(s, descriptor);
      }
      this.#endWord();
      if (this.#command.condition !== null) {
        this.#command.condition.push({ text: s.text[s.at] ?? '', holes: [] });
        s.at += 1;
        return;
      }
    }
    const target = readRedirection(s);
    if (target === 'process') this.#interrupt('process');
    else if (target === 'file' || target === 'duplicate') this.#command.redirected = target;
    else if (target !== null) {
      this.#heredocs.push(target);
      this.#command.prefixed = true;
    }
  }

  #openBracket(): void {
    const s = this.#scan;
    const command = this.#command;
    const isPattern = this.#open.at(-1) === 'case-pattern';
    const array = command.word === null || isPattern ? null : arrayBefore(command.word);
    if (command.word?.text === '!' && command.first)
      giveUp(s, 'it stands after !(, which shells read differently; put a space between');
    if (this.#isTimedWithin() || (command.first && command.word?.text === 'time'))
      giveUp(s, 'it stands after a `time (` that shells read differently');
    if (s.lost !== null) return;
    if (command.condition !== null) {
      this.#endWord();
      this.#open.push('group');
    } else if (array !== null) {
      s.arrays.add(array);
      this.#interrupt('array');
    } else if (command.word !== null && !isPattern && /[?*+@!]$/.test(command.word.text)) {
      this.#interrupt('pattern');
    } else if (!isPattern && s.text[s.at + 1] === '(') {
      this.#readArithmeticCommand();
      return;
    } else {
      this.#endWord();
      if (!isPattern) {
        this.#endCommand();
        this.#open.push('bracket');
      }
      this.#command.first = !isPattern;
    }
    s.at += 1;
    giveUpAtJoint(s);
  }

  /** At ((. */
  #readArithmeticCommand(): void {
    this.#endWord();
    const { first } = this.#command;
    this.#scan.at += 2;
    this.#readPart(ignoring(readArithmetic));
    // A command of its own, not a word of another.
    if (first) this.#command = newCommand(true);
  }

  /** Whether the bracket closes the current script. */
  #closeBracket(): boolean {
    this.#endWord();
    const open = this.#open;
    const top = open.at(-1);
    if (top === 'group') {
      open.pop();
      return false;
    }
    this.#endCommand();
    if (top === 'case-pattern') open[open.length - 1] = 'case-body';
    else if (top === 'bracket') open.pop();
    else if (top === 'array' || top === 'pattern' || top === 'process') {
      open.pop();
      this.#command = this.#interrupted.pop() ?? this.#command;
      this.#addPart(DYNAMIC, [], false);
    } else if (top === undefined && this.#close === ')') return true;
    else giveUp(this.#scan, 'it stands after a ) that closes nothing');
    return false;
  }

  /** Reads a nested construct, after which this command continues. */
  #interrupt(kind: 'array' | 'pattern' | 'process'): void {
    this.#open.push(kind);
    this.#interrupted.push(this.#command);
    this.#command = newCommand(kind === 'process');
  }

  #endCommand(): void {
    this.#endWord();
    if (this.#command.condition !== null) giveUp(this.#scan, 'it stands within or after a [[ that is never closed');
    apply(this.#scan, judgeCommand(this.#command.words));
    this.#command = newCommand(true);
  }

  #endWord(): void {
    const command = this.#command;
    const { word, redirected, condition } = command;
    if (word === null) return;
    command.word = null;
    const text = word.plain ? word.text : null;
    if (redirected !== null) {
      command.redirected = null;
      command.prefixed = true;
      if (redirected === 'duplicate') apply(this.#scan, judgeDuplicate(word));
    } else if (condition !== null) this.#endConditionWord(condition, word, text);
    else if (this.#open.at(-1) === 'array') apply(this.#scan, judgeElement(word));
    else this.#endCommandWord(word, text);
  }

  #endConditionWord(condition: Word[], word: Word, text: string | null): void {
    const s = this.#scan;
    if (text !== ']]') condition.push(word);
    else if (this.#open.at(-1) === 'group')
      giveUp(s, 'it stands within or after brackets in [[ … ]] that are never closed');
    else {
      apply(s, judgeCondition(condition));
      this.#command = newCommand(true);
    }
  }

  /** Inside another script bash does not know `time`, and reads the following words as arguments. */
  #isTimedWithin(): boolean {
    return this.#command.behind === 'time' && (this.#scan.script > 0 || this.#interrupted.length > 0);
  }

  /** `text`: the word if it has no quotes, expansions and placeholders, and so may be a reserved word. */
  #endCommandWord(word: Word, text: string | null): void {
    const command = this.#command;
    const { first, behind } = command;
    const isTimed = this.#isTimedWithin();
    command.behind = null;
    if (this.#endCaseWord(text)) return;
    if (behind === 'function') command.first = true;
    else if (first && text !== null && this.#endReservedWord(text, isTimed)) return;
    else if (behind === 'time' && (text === '-p' || text === '--')) command.behind = 'time';
    else this.#endOrdinaryWord(word, text);
  }

  /** Whether the word belongs to a `case` before its first command. */
  #endCaseWord(text: string | null): boolean {
    const open = this.#open;
    switch (open.at(-1)) {
      case 'case-subject':
        open[open.length - 1] = 'case-in';
        return true;
      case 'case-in':
        if (text !== 'in') giveUp(this.#scan, 'it stands after a `case` that this version cannot follow');
        open[open.length - 1] = 'case-pattern';
        this.#command.first = true;
        return true;
      case 'case-pattern':
        if (this.#command.first && text === 'esac') open.pop();
        else this.#command.first = false;
        return true;
      default:
        return false;
    }
  }

  /** At the start of a command. Whether the word is reserved. */
  #endReservedWord(text: string, isTimed: boolean): boolean {
    const command = this.#command;
    if (RESERVED.has(text) && text !== 'time' && (command.prefixed || isTimed)) {
      giveUp(this.#scan, `it stands after a \`${text}\` that shells do not take for one of their own words there`);
    } else if (text === 'esac' && this.#open.at(-1) === 'case-body') this.#open.pop();
    else if (text === 'case') {
      this.#open.push('case-subject');
      command.first = false;
    } else if (BEFORE_COMMAND.has(text) || AFTER_COMMAND.has(text)) {
      if (text === 'time') command.behind = 'time';
    } else if (text === 'function') {
      command.behind = 'function';
      command.first = false;
    } else if (text === 'coproc') giveUp(this.#scan, 'it stands within or after a `coproc`');
    else if (text === '[[') command.condition = [];
    else return false;
    return true;
  }

  #endOrdinaryWord(word: Word, text: string | null): void {
    const command = this.#command;
    const { first, words } = command;
    if (first && hasOpenSubscript(word))
      giveUp(this.#scan, 'it stands within or after a subscript with spaces', NO_CURE);
    else if (first && isAssignment(word)) {
      command.prefixed = true;
      apply(this.#scan, judgeAssignment(word));
    } else if (words.length === 2 && (text === 'do' || text === '{') && /^(?:for|select)$/.test(words[0]?.text ?? '')) {
      this.#endCommand();
    } else {
      words.push(word);
      command.first = false;
    }
  }
}

const ignoring =
  (read: (s: Scan) => void) =>
  (s: Scan): undefined => {
    read(s);
  };

/**
 * A harmless value needs no quotes if it is a word of its own. The same holds if the adjacent text cannot form a
 * reserved word with it (`i` and `f`) or give it a meaning (`~`, `{a,b}`).
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

/** At `<` or `>`: a here-document, a redirection word, or a process substitution. */
function readRedirection(s: Scan): Heredoc | 'file' | 'duplicate' | 'process' | null {
  const operator = /<<<|<<-?|[<>]\(|>>|>\||[<>]&|<>|[<>]/y;
  operator.lastIndex = s.at;
  const text = operator.exec(s.text)?.[0] ?? '<';
  s.at += text.length;
  giveUpAtJoint(s);
  if (text.endsWith('(')) return 'process';
  if (text.endsWith('&')) return 'duplicate';
  if (text !== '<<' && text !== '<<-') return 'file';
  const read = readDelimiter(s.text, s.at);
  if (read === null) {
    giveUp(s, 'it stands after a here-document whose delimiter cannot be told');
    return null;
  }
  s.at = read.end;
  return { delimiter: read.delimiter, raw: read.raw, tabs: text === '<<-' ? 'stripped' : 'kept' };
}
