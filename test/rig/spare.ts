// A shell that a launcher has ready (src/drivers/command/spare-shell.ts), seen from outside.

import { readFileSync, readlinkSync } from 'node:fs';

/** It carries the marker of spares, and waits for a text: it belongs to no step yet. False for what has ended meanwhile. */
export function isIdleSpare(pid: number): boolean {
  try {
    const isSpare = /(?:^|\0)MEOW_RUN=[^\0]*:(?:\0|$)/.test(readFileSync(`/proc/${pid}/environ`, 'latin1'));
    return isSpare && readlinkSync(`/proc/${pid}/fd/0`).startsWith('pipe:');
  } catch {
    return false;
  }
}
