// `meow export`, `meow import` and `meow report`: a run as an archive or a page.

import { resolve } from 'node:path';

import { importRun, packRun } from '../../app/export-run.ts';
import { findProject } from '../../app/project.ts';
import { reportRun } from '../../app/report-run.ts';
import { UsageError } from '../../base/errors.ts';
import { asUsageError, isSystemError } from '../../sys/errors.ts';
import { replacePrivate } from '../../sys/files.ts';
import { EXIT, printLine } from '../output.ts';

declare const MEOW_VERSION: string;

interface ExportOptions {
  readonly output?: string;
  /** False with `--no-logs`. */
  readonly logs?: boolean;
  readonly otlp?: true;
  readonly json?: true;
}

export async function exportRun(run: string, options: ExportOptions): Promise<number> {
  const { output, logs, otlp, json } = options;
  if (otlp) return await (await import('./export-otlp.ts')).exportOtlp(run, options);
  if (json) throw new UsageError('--json is for --otlp', `meow export ${run} --otlp --json`);
  const packed = await packRun(findProject(), run, { withLogs: logs !== false, version: MEOW_VERSION });
  const file = output ?? `${packed.id}.tar.gz`;
  writeNew(file, packed.bytes);
  printLine(file);
  return EXIT.done;
}

export async function importArchive(file: string): Promise<number> {
  printLine(await importRun(findProject(), file));
  return EXIT.done;
}

export async function report(run: string, { output }: { readonly output?: string }): Promise<number> {
  if (output === undefined) throw new UsageError('meow report needs a file', `meow report ${run} -o ${run}.html`);
  const { html } = await reportRun(findProject(), run, Date.now());
  writeNew(output, html);
  printLine(output);
  return EXIT.done;
}

function writeNew(file: string, content: string | Uint8Array): void {
  try {
    replacePrivate(resolve(file), content);
  } catch (error) {
    throw isSystemError(error) ? asUsageError(error, `write ${file}`, file) : error;
  }
}
