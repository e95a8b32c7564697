// The pause of a loop that works when something has changed or is due. A wake that comes while the loop works is not lost.

/** Clocks may jump, and a machine may sleep. */
const SLEEP_MAX_MS = 30_000;

export class Sleeper {
  #isWoken = false;
  #end = (): void => {};

  wake(): void {
    this.#isWoken = true;
    this.#end();
  }

  /** Resolves at `moment` or before, and at once if it has been woken since the last time. Null: only a wake is expected. */
  async sleep(moment: number | null): Promise<void> {
    const ms = Math.max(0, Math.min((moment ?? Infinity) - Date.now(), SLEEP_MAX_MS));
    if (!this.#isWoken) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.#end = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#end = () => {};
    this.#isWoken = false;
  }
}
