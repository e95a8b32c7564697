// What an agent has answered, as the output `result` of its step. One that is too large for the journal is kept in a file.

import { join } from 'node:path';
import type { PromptMessage } from '../../../ir/prompt-text.ts';
import { capture } from '../../capture-outputs.ts';
import type { Captured } from '../../capture-outputs.ts';
import { stepFolder } from '../../step-folder.ts';
import { makeFolder, writePrivate } from '../../../sys/private-file.ts';

export async function keptResult({ id, step }: PromptMessage, text: string, runFolder: string): Promise<Captured> {
  if (Buffer.byteLength(text) <= JOURNAL_BYTES_MAX) return { outputs: { result: text }, kept: [], problems: [] };
  const folder = stepFolder(runFolder, step, Number(id.slice(id.lastIndexOf('#') + 1)));
  makeFolder(folder.path);
  const path = join(folder.path, 'answer');
  writePrivate(path, text);
  const result = { name: 'result', from: { kind: 'file', path }, type: 'any', required: true } as const;
  return capture([result], { runFolder, folder, cwd: folder.path, status: 0 });
}

const JOURNAL_BYTES_MAX = 1_000_000;
