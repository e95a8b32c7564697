// TOML text → tree with places, for workflows and configuration alike. Texts that are no text at all (empty, huge, with
// NUL bytes) are answered before anything is parsed.

import type { Report } from './report.ts';
import { parseToml } from './toml-parse.ts';
import type { TomlTable } from './toml-tree.ts';

/** More than this is no workflow that somebody wrote. */
const TOML_LENGTH_MAX = 10_000_000;

/** Null where the report says why. */
export function readToml(report: Report): TomlTable | null {
  const { text } = report.source;
  if (text.length > TOML_LENGTH_MAX) {
    const size = `${(text.length / 1_000_000).toFixed(1)} MB`;
    report.error(
      'file-too-large',
      START,
      `the file has ${size}; at most 10 MB are read`,
      'Keep data in files of their own, and read them in a step.',
    );
    return null;
  }
  const nul = text.indexOf('\0');
  if (nul !== -1) {
    const hint = 'Is this a text file? TOML is UTF-8 text without NUL bytes.';
    report.error('nul-byte', { from: nul, to: nul + 1 }, 'the file contains a NUL byte', hint);
    return null;
  }
  return parseToml(report);
}

const START = { from: 0, to: 1 };
