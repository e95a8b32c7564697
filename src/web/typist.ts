// Types the keys of one tab into one terminal, in order. Keys that arrive while others are typed are typed together.

import { atItsFolder } from '../app/list-workflows.ts';
import { AgentKeys, type TypedBy } from '../app/type-keys.ts';
import type { Result } from '../base/errors.ts';
import { crash } from '../sys/errors.ts';
import type { NamedRun } from './named-runs.ts';
import { KEYS_BYTES_MAX } from './protocol.ts';

/** An error is a sentence. */
type Typed = Result<null, string>;

interface Waiting {
  bytes: Buffer;
  readonly typed: TypedBy;
}

export class Typist {
  readonly #keys: AgentKeys;
  #waiting: (Waiting & { readonly done: Promise<Typed> }) | null = null;
  #last: Promise<unknown> = Promise.resolve();

  constructor({ project, store, id }: NamedRun, agent: string) {
    this.#keys = new AgentKeys(atItsFolder(project), store, id, agent);
  }

  type(bytes: Buffer, typed: TypedBy): Promise<Typed> {
    const before = this.#waiting;
    const isSame = before?.typed.intoDialog === typed.intoDialog;
    if (before !== null && isSame && before.bytes.length + bytes.length <= KEYS_BYTES_MAX) {
      before.bytes = Buffer.concat([before.bytes, bytes]);
      return before.done;
    }
    const next: Waiting = { bytes, typed };
    const done = this.#last.then((): Promise<Typed> => {
      if (this.#waiting?.done === done) this.#waiting = null;
      return this.#keys.type(waiting.bytes, typed);
    });
    const waiting = Object.assign(next, { done });
    this.#waiting = waiting;
    this.#last = done.catch(() => undefined);
    return done;
  }

  close(): void {
    this.#last.then(() => this.#keys.close()).catch(crash);
  }
}
