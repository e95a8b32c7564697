// The agent's latest message; a message that arrives in pieces is joined. A message over the size limit counts as none.

export class LatestMessage {
  #pieces: string[] = [];
  #length = 0;

  /** Starts a new message. */
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
