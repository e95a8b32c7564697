// Tool calls in flight.

export class OpenCalls {
  readonly #ids = new Set<string>();

  begin(id: string | null): void {
    if (id !== null && this.#ids.size < CALLS_MAX) this.#ids.add(id);
  }

  end(id: string | null): void {
    if (id !== null) this.#ids.delete(id);
  }

  endAll(): void {
    this.#ids.clear();
  }

  get any(): boolean {
    return this.#ids.size > 0;
  }
}

/** More than any agent makes at once. */
const CALLS_MAX = 1_000;
