// Exit codes, and the messages for errors. Both depend on whose fault the error is.

import { DiskFailure, InvalidWorkflow } from '../app/errors.ts';
import { UsageError } from '../base/usage-error.ts';
import { warn } from './output.ts';

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

/** Prints the error and its hint; returns the exit code. */
export function report(error: unknown): number {
  if (error instanceof UsageError || error instanceof InvalidWorkflow) {
    warn(`meow: ${error.message}`);
    if (error.hint !== null) warn(`  ${error.hint}`);
    if (error instanceof DiskFailure) return EXIT.paused;
    return error instanceof UsageError ? EXIT.usage : EXIT.failed;
  }
  reportBug(error);
  return EXIT.bug;
}

/** Sets the run that a bug report names. */
export function workingOn(runId: string | null): void {
  heldRun = runId;
}

let heldRun: string | null = null;

function reportBug(error: unknown): void {
  const what = error instanceof Error ? (error.stack ?? error.message) : String(error);
  warn('meow: this is a bug in meow, not in your workflow');
  if (heldRun !== null) {
    warn(`  run ${heldRun} is held: its journal is complete, and nothing more is started`);
    warn(`  resume it: meow resume ${heldRun}`);
  }
  const about = `meow ${MEOW_VERSION}, node ${process.version}, ${process.platform}-${process.arch}`;
  warn('  please report it with the lines below and what you did:');
  warn(`  ${about}${heldRun === null ? '' : `, run ${heldRun}`}`);
  warn(what.replaceAll(/^/gm, '  '));
}
