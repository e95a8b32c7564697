// Finds the shell context of each {{…}} in a script, and so how its value must be quoted. The script is read like POSIX
// sh, as far as quoting goes: words, quotes, expansions, here-documents, comments, `case` patterns; and like bash where
// bash evaluates words without their quotes.
//
//   - A placeholder is a NUL character here; scripts contain no others.
//   - A position is accepted only if dash and bash agree on it. Otherwise the placeholder is refused with a reason; so
//     it is in a malformed script, or if even a quoted value would change the meaning of the text around it. A wrong
//     answer would let a value become code; a refusal costs the author one line.
//   - If the reader loses track, it may have lost it earlier than it noticed: then every placeholder is refused.

import {
  arrayBefore,
  DYNAMIC,
  judgeAssignment,
  judgeCommand,
  judgeCondition,
  judgeDescriptor,
  judgeDuplicate,
  judgeElement,
  type Word,
} from './shell-evaluation.ts';
import { type Heredoc, HOLE, readDelimiter } from './shell-heredoc.ts';
import { readArithmetic, readBackslash, readDouble, readExpansion, readHeredoc, readSingle } from './shell-quotes.ts';
import { type HoleContext, Scan } from './shell-scan.ts';

/** One context per placeholder, in text order. */
export function shellContexts(script: string): readonly HoleContext[] {
  const scan = new Scan(script, readCommands);
  readCommands(scan, null);
  return scan.results();
}

/** Reserved words after which a command or another of them may follow: `if { …; } then`. */
const AROUND_COMMANDS = ['if', 'then', 'else', 'elif', 'while', 'until', 'do', '!', '{', 'time', '}', 'fi', 'done'];
/** All reserved words at the start of a command. */
const RESERVED = [...AROUND_COMMANDS, 'case', 'coproc', 'esac', 'for', 'function', 'select', '[['];

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

class Command {
  /** Whether a command (or a pattern) may start at the next word. */
  first: boolean;
  /** Its words, without assignments and redirections. */
  readonly words: Word[] = [];
  /** The words of an open `[[ … ]]`. */
  condition: Word[] | null = null;
  /** An assignment or a redirection precedes its first word. */
  prefixed = false;
  /** Kind of redirection that the next word belongs to. */
  redirected: 'file' | 'duplicate' | null = null;
  /** A preceding reserved word that matters. */
  behind: 'time' | 'function' | null = null;
  /** The current word; null between words. */
  word: { text: string; holes: number[]; plain: boolean } | null = null;

  constructor(first: boolean) {
    this.first = first;
  }
}

function readCommands(s: Scan, close: ')' | null): void {
  new CommandReader(s, close).read();
}

/** Reads commands to the end of the text, or to the `)` that closes the script. */
class CommandReader {
  readonly #scan: Scan;
  readonly #close: ')' | null;
  readonly #open: Open[] = [];
  readonly #heredocs: Heredoc[] = [];
  #command = new Command(true);
  /** Commands that continue after an array, a `<(…)` or a pattern like `!(…)` inside them. */
  readonly #interrupted: Command[] = [];
  /** Whether the `)` was read that closes the script. */
  #isClosed = false;

  constructor(scan: Scan, close: ')' | null) {
    this.#scan = scan;
    this.#close = close;
  }

  read(): void {
    const s = this.#scan;
    while (s.at < s.text.length) {
      this.#readNext(s.next ?? '');
      if (!this.#isClosed) continue;
      if (this.#heredocs.length > 0) s.giveUp('a here-document begins on the last line of a $(…)');
      return;
    }
    this.#endCommand();
    if (this.#interrupted.length > 0) s.giveUp('it is within or after a ( that is never closed');
    if (this.#close !== null) s.giveUp('it is within or after a $( that is never closed');
  }

  #readNext(character: string): void {
    const s = this.#scan;
    switch (character) {
      case HOLE:
        return this.#readPart(readWordHole);
      case "'":
        return this.#readPart(readSingle);
      case '"':
        return this.#readPart(readDouble);
      case '`':
      case '$':
        return this.#readPart(() => readExpansion(s, 'bare'));
      case '\\':
        if (s.text[s.at + 1] !== '\n') return this.#readPart(readBackslash);
        s.at += 2;
        return;
      case ' ':
      case '\t':
        this.#endWord();
        s.at += 1;
        return;
      case '\n':
        return this.#readLineEnd();
      case '#':
        return this.#readHash();
      case ';':
      case '&':
      case '|':
        return this.#readSeparator(character);
      case '(':
        return this.#openBracket();
      case ')':
        return this.#closeBracket();
      case '<':
      case '>':
        return this.#readAngle();
      default:
        this.#addPart(character, [], true);
        s.at += 1;
    }
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
  #readPart(read: (s: Scan) => string): void {
    const s = this.#scan;
    const from = s.at;
    const first = s.found.length;
    const text = read(s);
    this.#addPart(text, s.holesSince(first), false);
    // Shells disagree on the line end after which the body of a here-document starts then.
    if (this.#heredocs.length > 0 && s.text.slice(from, s.at).includes('\n')) {
      s.giveUp('the line that begins a here-document goes on over a line end within quotes or brackets');
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
      s.giveUp('it is after a # within [[ … ]] or a pattern');
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
      s.giveUp(`it is within or after [[ … ]] or an array with a ${character} in it`);
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
    else s.giveUp('it is after a ;; that belongs to no `case`');
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
        s.apply(descriptor);
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
      s.giveUp('it is after !(, which shells read differently; put a space between');
    if (this.#isTimedWithin() || (command.first && command.word?.text === 'time'))
      s.giveUp('it is after a `time (` that shells read differently');
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
    s.giveUpAtJoint();
  }

  /** At ((. */
  #readArithmeticCommand(): void {
    this.#endWord();
    const { first } = this.#command;
    this.#scan.at += 2;
    this.#readPart((s) => s.expansion(readArithmetic));
    // A command of its own, not a word of another.
    if (first) this.#command = new Command(true);
  }

  #closeBracket(): void {
    this.#scan.at += 1;
    this.#endWord();
    const open = this.#open;
    const top = open.at(-1);
    if (top !== 'group') this.#endCommand();
    if (top === 'case-pattern') open[open.length - 1] = 'case-body';
    else if (top === 'bracket' || top === 'group') open.pop();
    else if (top === 'array' || top === 'pattern' || top === 'process') {
      open.pop();
      this.#command = this.#interrupted.pop() ?? this.#command;
      this.#addPart(DYNAMIC, [], false);
    } else if (top === undefined && this.#close === ')') this.#isClosed = true;
    else this.#scan.giveUp('it is after a ) that closes nothing');
  }

  /** Reads a nested construct, after which this command continues. */
  #interrupt(kind: 'array' | 'pattern' | 'process'): void {
    this.#open.push(kind);
    this.#interrupted.push(this.#command);
    this.#command = new Command(kind === 'process');
  }

  #endCommand(): void {
    this.#endWord();
    if (this.#command.condition !== null) this.#scan.giveUp('it is within or after a [[ that is never closed');
    this.#scan.apply(judgeCommand(this.#command.words));
    this.#command = new Command(true);
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
      if (redirected === 'duplicate') this.#scan.apply(judgeDuplicate(word));
    } else if (condition !== null) this.#endConditionWord(condition, word, text);
    else if (this.#open.at(-1) === 'array') this.#scan.apply(judgeElement(word));
    else this.#endCommandWord(word, text);
  }

  #endConditionWord(condition: Word[], word: Word, text: string | null): void {
    const s = this.#scan;
    if (text !== ']]') condition.push(word);
    else if (this.#open.at(-1) === 'group') s.giveUp('it is within or after brackets in [[ … ]] that are never closed');
    else {
      s.apply(judgeCondition(condition));
      this.#command = new Command(true);
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
        if (text !== 'in') this.#scan.giveUp('it is after a `case` that this version cannot follow');
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
    if (RESERVED.includes(text) && text !== 'time' && (command.prefixed || isTimed)) {
      this.#scan.giveUp(`it is after a \`${text}\` that shells do not take for one of their own words there`);
    } else if (text === 'esac' && this.#open.at(-1) === 'case-body') this.#open.pop();
    else if (text === 'case') {
      this.#open.push('case-subject');
      command.first = false;
    } else if (AROUND_COMMANDS.includes(text)) {
      if (text === 'time') command.behind = 'time';
    } else if (text === 'function') {
      command.behind = 'function';
      command.first = false;
    } else if (text === 'coproc') this.#scan.giveUp('it is within or after a `coproc`');
    else if (text === '[[') command.condition = [];
    else return false;
    return true;
  }

  #endOrdinaryWord(word: Word, text: string | null): void {
    const command = this.#command;
    const { words } = command;
    const assignment = command.first ? judgeAssignment(word) : null;
    if (assignment !== null) {
      command.prefixed = true;
      this.#scan.apply(assignment);
    } else if (words.length === 2 && (text === 'do' || text === '{') && /^(?:for|select)$/.test(words[0]?.text ?? '')) {
      this.#endCommand();
    } else {
      words.push(word);
      command.first = false;
    }
  }
}

/**
 * A harmless value needs no quotes if it is a word of its own. The same holds if the adjacent text cannot form a
 * reserved word with it (`i` and `f`) or give it a meaning (`~`, `{a,b}`).
 */
function readWordHole(s: Scan): string {
  const apart = (character: string): boolean => ' \t\n;&|()<>=/:-.@%+'.includes(character);
  const before = s.text.slice(Math.max(0, s.at - 100), s.at);
  const wordBefore = /(?:[^\s;&|()<>]|\\\n)*$/.exec(before)?.[0] ?? '';
  const loose = apart(before.slice(-1)) && apart(s.text.slice(s.at + 1, s.at + 2)) && !/[~{[\\]/.test(wordBefore);
  s.place({ kind: loose ? 'bare' : 'quoted' });
  return HOLE;
}

function readComment(s: Scan): void {
  while (s.at < s.text.length && s.text[s.at] !== '\n') {
    if (s.text[s.at] === HOLE) s.place({ kind: 'comment' });
    else s.at += 1;
  }
}

/** At `<` or `>`: a here-document, a redirection word, or a process substitution. */
function readRedirection(s: Scan): Heredoc | 'file' | 'duplicate' | 'process' | null {
  const [text = '<'] = s.match(/<<<|<<-?|[<>]\(|>>|>\||[<>]&|<>|[<>]/y) ?? [];
  s.giveUpAtJoint();
  if (text.endsWith('(')) return 'process';
  if (text.endsWith('&')) return 'duplicate';
  if (text !== '<<' && text !== '<<-') return 'file';
  const read = readDelimiter(s.text, s.at);
  if (read === null) {
    s.giveUp('it is after a here-document whose delimiter cannot be told');
    return null;
  }
  s.at = read.end;
  return { delimiter: read.delimiter, raw: read.raw, tabs: text === '<<-' ? 'stripped' : 'kept' };
}
