// A file that readers always find whole: each text is written beside it and renamed over it. Texts that wait together are
// written once, as the last of them. The journal is the truth, so a text lost with the machine is no loss; an empty file
// would be a puzzle, so the text is on the disk before the name leads to it.

import { open, rename, unlink } from 'node:fs/promises';

import { isSystemError, refusalOf } from './usage-errors.ts';

export interface StateFile {
  /**
   * Resolves when this text, or one that came after it, can be read. After a rejection the next write tries anew. A long
   * text comes in pieces, and is never put together.
   */
  write(text: string | readonly string[]): Promise<void>;
}

export function stateFile(path: string): StateFile {
  const scratch = `${path}.tmp`;
  let busy = false;
  let waiting: Waiting | null = null;

  async function drain(): Promise<void> {
    busy = true;
    while (waiting !== null) {
      const { text, callers } = waiting;
      waiting = null;
      try {
        await replace(path, scratch, text);
        for (const { resolve } of callers) resolve();
      } catch (error) {
        for (const { reject } of callers) reject(refusalOf(error, 'write the state file', path));
      }
    }
    busy = false;
  }

  return {
    write(text) {
      return new Promise((resolve, reject) => {
        waiting = { text, callers: [...(waiting?.callers ?? []), { resolve, reject }] };
        if (!busy) void drain();
      });
    },
  };
}

interface Waiting {
  readonly text: string | readonly string[];
  readonly callers: readonly { readonly resolve: () => void; readonly reject: (error: unknown) => void }[];
}

async function replace(path: string, scratch: string, text: string | readonly string[]): Promise<void> {
  // One that a crash left behind is written over.
  const file = await open(scratch, 'w', 0o600);
  try {
    await file.chmod(0o600);
    for (const piece of typeof text === 'string' ? [text] : text) await file.appendFile(piece);
    await file.datasync();
    await rename(scratch, path);
  } catch (error) {
    // A full disk has no room for half a text. Where even that cannot be, the first error is the one to be told.
    await unlink(scratch).catch((second: unknown) => {
      if (!isSystemError(second)) throw second;
    });
    throw error;
  } finally {
    await file.close();
  }
}
