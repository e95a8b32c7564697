// What an agent has said since it last began to say something: of a message that comes in pieces, all of them. There is
// a limit to what is kept; an answer that is longer is none.

export class LastWords {
  #pieces: string[] = [];
  #length = 0;

  /** It begins to say something else. */
  begin(): void {
    this.#pieces = [];
    this.#length = 0;
  }

  add(piece: string): void {
    this.#length += piece.length;
    if (this.#length <= LENGTH_MAX) this.#pieces.push(piece);
  }

  get text(): string {
    if (this.#pieces.length > 1) this.#pieces = [this.#pieces.join('')];
    return this.#pieces[0] ?? '';
  }

  get isTooLong(): boolean {
    return this.#length > LENGTH_MAX;
  }
}

const LENGTH_MAX = 64_000_000;

export const TOO_LONG = `its answer has more than ${LENGTH_MAX} characters`;
