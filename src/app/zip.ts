// Reads a zip archive that may be damaged or hostile: every entry is checked and unpacked in memory, within limits. Names
// are relative paths without `..`, and entries are regular files: nothing of an archive can lead out of it.

import { isUtf8 } from 'node:buffer';
import { crc32, inflateRawSync } from 'node:zlib';

import { err, ok, type Result } from '../base/errors.ts';
import { hasControlCharacters } from '../base/sanitize.ts';
import { isErrno } from '../sys/errors.ts';

export interface ZipFile {
  readonly bytes: Buffer;
  readonly isExecutable: boolean;
}

export const ZIP_BYTES_MAX = 10_000_000;
const ENTRIES_MAX = 1_000;
const UNPACKED_BYTES_MAX = 50_000_000;

/** Files by path. The error says what is wrong with the archive, after "it". */
export function readZip(zip: Buffer): Result<ReadonlyMap<string, ZipFile>, string> {
  const end = zip.lastIndexOf(END_SIGNATURE);
  if (end === -1 || end + END_BYTES > zip.length) return err('is not a zip archive, or is cut off');
  const count = zip.readUInt16LE(end + 10);
  const [length, from] = [zip.readUInt32LE(end + 12), zip.readUInt32LE(end + 16)];
  if (count === 0xffff || length === UNKNOWN || from === UNKNOWN) return err('has the format Zip64, which is not read');
  if (zip.readUInt16LE(end + 4) !== 0 || zip.readUInt16LE(end + 8) !== count) return err('is one part of several');
  if (count > ENTRIES_MAX) return err(`has ${count} entries, and at most ${ENTRIES_MAX} are read`);
  if (from + length > end) return err(DAMAGED);
  return readEntries(zip.subarray(0, from), zip.subarray(from, from + length), count);
}

const END_SIGNATURE = Buffer.from('PK\u0005\u0006');
const END_BYTES = 22;
const ENTRY_SIGNATURE = 0x02014b50;
const ENTRY_BYTES = 46;
const LOCAL_SIGNATURE = 0x04034b50;
const LOCAL_BYTES = 30;
const UNKNOWN = 0xffffffff;
const DAMAGED = 'is damaged: its directory cannot be read';

/** `directory`: the entries that describe the files in `body`. */
function readEntries(body: Buffer, directory: Buffer, count: number): Result<ReadonlyMap<string, ZipFile>, string> {
  const files = new Map<string, ZipFile>();
  const folders = new Set<string>();
  let unpacked = 0;
  for (let at = 0, index = 0; index < count; index += 1) {
    if (at + ENTRY_BYTES > directory.length || directory.readUInt32LE(at) !== ENTRY_SIGNATURE) return err(DAMAGED);
    const nameBytes = directory.readUInt16LE(at + 28);
    const more = directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32);
    const rawName = directory.subarray(at + ENTRY_BYTES, at + ENTRY_BYTES + nameBytes);
    if (rawName.length !== nameBytes || !isUtf8(rawName)) return err(DAMAGED);
    const entry = directory.subarray(at, at + ENTRY_BYTES);
    at += ENTRY_BYTES + nameBytes + more;
    const name = rawName.toString('utf8');
    const problem = problemOf(entry, name);
    if (problem !== null) return err(problem);
    const path = name.replace(/\/+$/, '');
    if (path === '' || path.split('/').some((part) => part === '__MACOSX' || part === '.DS_Store')) continue;
    for (const folder of parentsOf(path)) folders.add(folder);
    if (name.endsWith('/')) {
      folders.add(path);
      continue;
    }
    unpacked += entry.readUInt32LE(24);
    if (unpacked > UNPACKED_BYTES_MAX)
      return err(`unpacks to more than the ${UNPACKED_BYTES_MAX / 1_000_000} MB that are read`);
    if (files.has(path)) return err(`has two entries ${JSON.stringify(path)}`);
    const bytes = unpack(body, entry, rawName);
    if (bytes === null) return err(`is damaged: ${JSON.stringify(path)} cannot be unpacked`);
    files.set(path, { bytes, isExecutable: (modeOf(entry) & 0o111) !== 0 });
  }
  const both = [...files.keys()].find((path) => folders.has(path));
  return both === undefined ? ok(files) : err(`has both a file and a folder ${JSON.stringify(both)}`);
}

function problemOf(entry: Buffer, name: string): string | null {
  const shown = JSON.stringify(name);
  const flags = entry.readUInt16LE(8);
  const method = entry.readUInt16LE(10);
  const type = modeOf(entry) & 0o170_000;
  if (name.startsWith('/') || /^[a-z]:/i.test(name) || name.split(/[\\/]/).includes('..'))
    return `has the entry ${shown}, whose path leads out of it`;
  if (name.includes('\\') || hasControlCharacters(name)) return `has the entry ${shown}, which cannot be a file name`;
  if ((flags & 1) !== 0) return `is encrypted: ${shown}`;
  if (type === 0o120_000) return `has the link ${shown}, and links are not followed`;
  if (type !== 0 && type !== 0o100_000 && type !== 0o040_000) return `has ${shown}, which is not a regular file`;
  if (method !== 0 && method !== 8) return `has ${shown}, which is compressed in an unknown way (method ${method})`;
  if (entry.readUInt32LE(24) === UNKNOWN || entry.readUInt32LE(20) === UNKNOWN)
    return 'has the format Zip64, which is not read';
  return null;
}

/** 0 if the archive was not made on Unix. */
function modeOf(entry: Buffer): number {
  return entry.readUInt8(5) === 3 ? entry.readUInt16LE(40) : 0;
}

function parentsOf(path: string): readonly string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}

/** Null if it does not have the size and the checksum that the directory says. */
function unpack(body: Buffer, entry: Buffer, name: Buffer): Buffer | null {
  const [packedBytes, bytes, at] = [entry.readUInt32LE(20), entry.readUInt32LE(24), entry.readUInt32LE(42)];
  if (at + LOCAL_BYTES > body.length || body.readUInt32LE(at) !== LOCAL_SIGNATURE) return null;
  const from = at + LOCAL_BYTES + body.readUInt16LE(at + 26) + body.readUInt16LE(at + 28);
  if (!body.subarray(at + LOCAL_BYTES, at + LOCAL_BYTES + body.readUInt16LE(at + 26)).equals(name)) return null;
  if (from + packedBytes > body.length) return null;
  const packed = body.subarray(from, from + packedBytes);
  const unpacked = entry.readUInt16LE(10) === 0 ? packed : inflate(packed, bytes);
  return unpacked?.length === bytes && crc32(unpacked) === entry.readUInt32LE(16) ? unpacked : null;
}

function inflate(packed: Buffer, bytes: number): Buffer | null {
  try {
    return inflateRawSync(packed, { maxOutputLength: Math.max(1, bytes) });
  } catch (error) {
    if (error instanceof RangeError || isErrno(error, 'Z_DATA_ERROR', 'Z_BUF_ERROR', 'ERR_BUFFER_TOO_LARGE'))
      return null;
    throw error;
  }
}
