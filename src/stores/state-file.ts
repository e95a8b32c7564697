// A file that readers always find whole: each text is written to a temporary file, made durable, and renamed. If several
// writes wait, only the last text is written. A text that is lost in a power failure does no harm, because the journal has
// everything; an empty file would confuse people.

import { open, rename, unlink } from 'node:fs/promises';

import { asUsageError } from './usage-errors.ts';
import { isSystemError } from '../sys/errno.ts';

export interface StateFile {
  /** Resolves when this text, or a later one, can be read. A failed write does not affect the next one. */
  write(text: string | readonly string[]): Promise<void>;
}

export function stateFile(path: string): StateFile {
  const temporary = `${path}.tmp`;
  let busy = false;
  let pending: PendingWrite | null = null;

  async function drain(): Promise<void> {
    busy = true;
    while (pending !== null) {
      const { text, callers } = pending;
      pending = null;
      try {
        await replace(path, temporary, text);
        for (const { resolve } of callers) resolve();
      } catch (error) {
        for (const { reject } of callers) reject(asUsageError(error, 'write the state file', path));
      }
    }
    busy = false;
  }

  return {
    write(text) {
      return new Promise((resolve, reject) => {
        pending = { text, callers: [...(pending?.callers ?? []), { resolve, reject }] };
        if (!busy) void drain();
      });
    },
  };
}

interface PendingWrite {
  readonly text: string | readonly string[];
  readonly callers: readonly { readonly resolve: () => void; readonly reject: (error: unknown) => void }[];
}

async function replace(path: string, temporary: string, text: string | readonly string[]): Promise<void> {
  // Overwrites a file that a crash left.
  const file = await open(temporary, 'w', 0o600);
  try {
    await file.chmod(0o600);
    for (const piece of typeof text === 'string' ? [text] : text) await file.appendFile(piece);
    await file.datasync();
    await rename(temporary, path);
  } catch (error) {
    // Frees the space on a full disk. If that fails too, the first error is the one to report.
    await unlink(temporary).catch((second: unknown) => {
      if (!isSystemError(second)) throw second;
    });
    throw error;
  } finally {
    await file.close();
  }
}
