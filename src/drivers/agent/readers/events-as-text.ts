// The output of an agent's program for people: its messages, instead of the events that it prints as JSON lines.

import { EventReader, type Reader } from './reader.ts';

export class EventsAsText {
  readonly #reader: Reader;
  readonly #decoder = new TextDecoder();
  /** An incomplete line. */
  #rest = '';
  /** As much of the agent's present message as was shown. */
  #shown = '';
  #isEmpty = true;
  #inLine = false;

  /** Null if the reader's program prints text. */
  static of(reader: Reader): EventsAsText | null {
    return reader instanceof EventReader ? new EventsAsText(reader) : null;
  }

  private constructor(reader: Reader) {
    this.#reader = reader;
  }

  /** The new text in more of the output. */
  add(bytes: Uint8Array): string {
    const lines = `${this.#rest}${this.#decoder.decode(bytes, { stream: true })}`.split('\n');
    this.#rest = lines.pop() ?? '';
    return lines.map((line) => this.#textOf(line)).join('');
  }

  /** An error, or an answer that was not among the messages. */
  end(): string {
    const last = this.#textOf(this.#rest);
    const { verdict } = this.#reader.end({ status: 0, stderr: '', at: 0 });
    const isNew = verdict.kind === 'error' || (verdict.kind === 'answer' && this.#isEmpty);
    const said = verdict.kind === 'error' ? verdict.message : verdict.kind === 'answer' ? (verdict.text ?? '') : '';
    return `${last}${isNew && said !== '' ? this.#fresh(said) : ''}${this.#inLine ? '\n' : ''}`;
  }

  #textOf(line: string): string {
    if (line === '') return '';
    // Not an event: perhaps the program's own complaint.
    if (!line.startsWith('{')) return this.#fresh(`${line}\n`);
    this.#reader.line(line);
    const { text } = this.#reader;
    const before = this.#shown;
    this.#shown = text;
    if (text === before || text === '') return '';
    return before !== '' && text.startsWith(before) ? this.#written(text.slice(before.length)) : this.#fresh(text);
  }

  /** Begins in a line of its own. */
  #fresh(text: string): string {
    const lead = this.#inLine ? '\n' : '';
    return `${lead}${this.#written(text)}`;
  }

  #written(text: string): string {
    this.#isEmpty = false;
    this.#inLine = !text.endsWith('\n');
    return text;
  }
}
