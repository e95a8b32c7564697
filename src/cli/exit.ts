// The exit statuses of every command, and what is printed when one ends by an error. Whose fault it was decides both.

import { DiskFailure, InvalidWorkflow } from '../app/errors.ts';
import { UsageError } from '../base/usage-error.ts';
import { complain } from './output.ts';

declare const MEOW_VERSION: string;

export const EXIT = {
  done: 0,
  /** The run failed, or the workflow is invalid. */
  failed: 1,
  usage: 2,
  /** Paused, held, or waiting for a person. */
  paused: 3,
  bug: 70,
} as const;

/** Prints what went wrong, and what to do about it; returns the exit status. */
export function report(error: unknown): number {
  if (error instanceof UsageError || error instanceof InvalidWorkflow) {
    complain(`meow: ${error.message}`);
    if (error.hint !== null) complain(`  ${error.hint}`);
    if (error instanceof DiskFailure) return EXIT.paused;
    return error instanceof UsageError ? EXIT.usage : EXIT.failed;
  }
  reportBug(error);
  return EXIT.bug;
}

/** Named while this process works on a run, for the report of a bug. */
export function workingOn(runId: string | null): void {
  heldRun = runId;
}

let heldRun: string | null = null;

function reportBug(error: unknown): void {
  const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
  complain('meow: this is a bug in meow, not in your workflow');
  if (heldRun !== null) {
    complain(`  run ${heldRun} is held: what it recorded is kept, and nothing more is started`);
    complain(`  go on with it: meow resume ${heldRun}`);
  }
  const about = `meow ${MEOW_VERSION}, node ${process.version}, ${process.platform}-${process.arch}`;
  complain('  please report it, with the lines below and what you did:');
  complain(`  ${about}${heldRun === null ? '' : `, run ${heldRun}`}`);
  complain(what.replaceAll(/^/gm, '  '));
}
