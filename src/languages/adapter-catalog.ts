// What languages may ask about agent adapters.

import type { Result } from '../base/errors.ts';
import type { Adapter } from '../ir/adapter.ts';

export interface AdapterCatalog {
  /** Overrides the adapter that workflows name; null does not. */
  readonly forced: string | null;
  /** Default adapter. */
  fallback(): string;
  /** Resolves a name or alias. */
  meant(name: string): string;
  /** An error is a sentence. */
  named(name: string): Result<Adapter, string>;
  /** Why nothing can be started with one; null if it can. */
  refusal(name: string): AdapterRefusal | null;
}

export interface AdapterRefusal {
  readonly message: string;
  readonly hint: string;
}

/** Facts about adapters for headless turns. */
export interface AdapterKnowledge {
  readonly forced: string | null;
  readonly fallback: string;
  /** Resolves a name or alias. */
  readonly meant: (name: string) => string;
  /** Why nothing can be started with one. */
  readonly refusal: (adapter: string) => AdapterRefusal | null;
  /** Whether a session can be forked, or its conversation replayed in a fresh one. */
  readonly canFork: (adapter: string) => boolean;
  /** Whether the model or the effort can be chosen. */
  readonly canChoose: (adapter: string, what: 'model' | 'effort') => boolean;
}

export function headlessKnowledge(adapters: AdapterCatalog): AdapterKnowledge {
  const headless = (name: string): Adapter['headless'] => {
    const found = adapters.named(name);
    return found.ok ? found.value.headless : null;
  };
  return {
    forced: adapters.forced,
    fallback: adapters.fallback(),
    meant: (name) => adapters.meant(name),
    canChoose: (name, what) => {
      const ways = headless(name);
      return ways === null || (what === 'model' ? ways.modelArgs : ways.effortArgs) !== null;
    },
    refusal: (name) => {
      const refusal = adapters.refusal(name);
      if (refusal !== null || headless(name) !== null) return refusal;
      const message = `the adapter ${name} has no way to work without a terminal`;
      return { message, hint: 'Use one that has: meow adapter list.' };
    },
    canFork: (name) => {
      const ways = headless(name);
      return ways !== null && (ways.fork !== null || ways.replays === true);
    },
  };
}
