// Archives of regular files in the format of tar (ustar, with pax records for long names), packed with gzip. Times, owners and
// other kinds of entries have no meaning here: what an archive may contain is small on purpose.
//
//   tar/1  Reading refuses everything but regular files and folders, and an archive whose checksums are wrong or that is cut off.
//   tar/2  Names are relative, with `/` between segments, and without empty segments, `.` and `..`.

import { gunzipSync, gzipSync } from 'node:zlib';

import { err, ok, type Result } from '../base/errors.ts';
import { tolerate } from '../sys/errors.ts';

export interface TarFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

const BLOCK = 512;
/** Unpacked. */
const BYTES_MAX = 2_000_000_000;

export function packTar(files: readonly TarFile[]): Buffer {
  const parts: Buffer[] = [];
  for (const { name, bytes } of files) {
    if (Buffer.byteLength(name) > NAME_MAX) parts.push(...entry('pax', paxRecord('path', name), 'x'));
    parts.push(...entry(name.slice(-NAME_MAX), bytes, '0'));
  }
  parts.push(Buffer.alloc(2 * BLOCK));
  return gzipSync(Buffer.concat(parts));
}

const NAME_MAX = 100;

function entry(name: string, bytes: Uint8Array, type: '0' | 'x'): readonly Buffer[] {
  const header = Buffer.alloc(BLOCK);
  const encoded = Buffer.from(name);
  encoded.subarray(Math.max(0, encoded.length - NAME_MAX)).copy(header, 0);
  header.write('0000600\0', 100, 'latin1');
  header.write('0000000\0', 108, 'latin1');
  header.write('0000000\0', 116, 'latin1');
  header.write(`${bytes.length.toString(8).padStart(11, '0')}\0`, 124, 'latin1');
  header.write('00000000000\0', 136, 'latin1');
  header.write(type, 156, 'latin1');
  header.write('ustar\u000000', 257, 'latin1');
  header.write(`${checksumOf(header).toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return [header, Buffer.from(bytes), Buffer.alloc((BLOCK - (bytes.length % BLOCK)) % BLOCK)];
}

/** Its length counts itself. */
function paxRecord(key: string, value: string): Buffer {
  const rest = Buffer.byteLength(` ${key}=${value}\n`);
  let length = rest + String(rest).length;
  length = rest + String(length).length;
  return Buffer.from(`${length} ${key}=${value}\n`);
}

/** The field of the checksum itself counts as blanks. */
function checksumOf(header: Buffer): number {
  let sum = 0;
  for (const [at, byte] of header.entries()) sum += at >= 148 && at < 156 ? 0x20 : byte;
  return sum;
}

/** An error is a clause about the archive. */
export function unpackTar(packed: Uint8Array): Result<readonly TarFile[], string> {
  const bytes = tolerate(CORRUPT, null, () => gunzipSync(packed, { maxOutputLength: BYTES_MAX }));
  if (bytes === null) return err('is not a whole archive, or too large');
  const files: TarFile[] = [];
  const names = new Set<string>();
  let longName: string | null = null;
  for (let at = 0; ; ) {
    if (at + BLOCK > bytes.length) return err('is cut off');
    const header = bytes.subarray(at, at + BLOCK);
    if (header.every((byte) => byte === 0)) return ok(files);
    if (checksumOf(header) !== parseInt(textAt(header, 148, 8), 8)) return err('has a wrong checksum');
    const size = parseInt(textAt(header, 124, 12), 8);
    const type = String.fromCharCode(header[156] ?? 0);
    const start = at + BLOCK;
    if (!Number.isSafeInteger(size) || size < 0 || start + size > bytes.length) return err('is cut off');
    const content = bytes.subarray(start, start + size);
    at = start + Math.ceil(size / BLOCK) * BLOCK;
    if (type === 'x') {
      longName = /^\d+ path=(.*)\n$/s.exec(content.toString())?.[1] ?? null;
      if (longName === null) return err('has an entry that meow does not write');
      continue;
    }
    const prefix = textAt(header, 345, 155);
    const short = textAt(header, 0, NAME_MAX);
    const name: string = longName ?? (prefix === '' ? short : `${prefix}/${short}`);
    longName = null;
    const isFolder = type === '5';
    if (type !== '0' && type !== '\0' && !isFolder)
      return err(`contains ${JSON.stringify(name)}, which is no regular file`);
    const plain = isFolder ? name.replace(/\/$/, '') : name;
    if (
      plain.split('/').some((segment) => segment === '' || segment === '.' || segment === '..') ||
      plain.includes('\0')
    )
      return err(`contains the name ${JSON.stringify(name)}, which leads outside`);
    if (isFolder) continue;
    if (names.has(name)) return err(`contains ${JSON.stringify(name)} twice`);
    names.add(name);
    files.push({ name, bytes: content });
  }
}

const CORRUPT = ['Z_DATA_ERROR', 'Z_BUF_ERROR', 'ERR_BUFFER_TOO_LARGE', 'Z_STREAM_ERROR', 'Z_NEED_DICT'];

function textAt(header: Buffer, start: number, length: number): string {
  const field = header.subarray(start, start + length);
  const end = field.indexOf(0);
  return field.subarray(0, end === -1 ? length : end).toString();
}
