// A filled text made whole: the pieces that stayed in files are read and quoted as their places demand. Only outputs that
// this run has kept are read, whatever a journal names: no other file of the machine can be made a part of a command.

import type { RunFiles } from '../engine/ports.ts';
import { readFileSync, realpathSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { err, ok } from '../base/result.ts';
import type { Result } from '../base/result.ts';
import { quote } from '../ir/quote.ts';
import type { FilledText } from '../ir/text.ts';
import { ABSENT, isErrno, REFUSED } from '../sys/errno.ts';

/** An error is a sentence. */
export function resolveText(text: FilledText, files: RunFiles): Result<string, string> {
  if (typeof text === 'string') return ok(text);
  const pieces: string[] = [];
  for (const piece of text) {
    if (typeof piece === 'string') {
      pieces.push(piece);
      continue;
    }
    const read = readPiece(files, piece.file);
    if (!read.ok) return read;
    const quoted = quote(read.value, piece.quote);
    if (!quoted.ok) return err(`the contents of ${piece.file}: ${quoted.error}`);
    pieces.push(quoted.value);
  }
  return ok(pieces.join(''));
}

const PIECE_BYTES_MAX = 128 * 1024 * 1024;

const KEPT = /^steps\/[^/]+\/\d+\/outputs\/[^/]+$/;

function readPiece(files: RunFiles, name: string): Result<string, string> {
  // Not by `localPath`: the name may be wrong, and is checked below.
  const runFolder = files.localPath('');
  const path = join(runFolder, name);
  try {
    const inRun = relative(realpathSync(runFolder), realpathSync(path));
    if (!KEPT.test(inRun)) return err(`${path} is not a stored output of this run`);
    const { size } = statSync(path);
    if (size > PIECE_BYTES_MAX)
      return err(`${path} has ${size} bytes: too many to be put into a text; use the file itself`);
    return ok(readFileSync(path, 'utf8'));
  } catch (error) {
    if (isErrno(error, ...ABSENT, ...REFUSED)) return err(`${path} cannot be read (${error.code})`);
    throw error;
  }
}
