import { describe, expect, test } from 'vitest';

import { zipOf } from '../../test/fixtures/raymond/zip.ts';
import { readZip } from './zip.ts';

const START = { name: 'START.md', text: 'Begin.' };

function problem(zip: Buffer): string {
  const read = readZip(zip);
  return read.ok ? 'none' : read.error;
}

test('files are unpacked with their paths, contents and execute bits', () => {
  const read = readZip(
    zipOf([
      START,
      { name: 'sub/', text: '', mode: 0o040_755, method: 0 },
      { name: 'sub/run.sh', text: 'echo', mode: 0o100_755, method: 0 },
      { name: '__MACOSX/._START.md', text: 'x' },
      { name: 'empty.md', text: '' },
    ]),
  );
  expect(read.ok && [...read.value].map(([path, file]) => [path, file.bytes.toString(), file.isExecutable])).toEqual([
    ['START.md', 'Begin.', false],
    ['sub/run.sh', 'echo', true],
    ['empty.md', '', false],
  ]);
});

describe('an archive is refused', () => {
  const whole = zipOf([START, { name: 'b', text: 'x'.repeat(1000) }]);

  test.each([
    ['that is empty', Buffer.alloc(0), 'is not a zip archive'],
    ['that is text', Buffer.from('# START'), 'is not a zip archive'],
    ['that is cut off', whole.subarray(0, -30), 'is not a zip archive, or is cut off'],
    ['whose beginning is missing', whole.subarray(40), 'is damaged'],
    ['with a wrong checksum', zipOf([{ ...START, crc: 1 }]), 'is damaged: "START.md" cannot be unpacked'],
    ['with an entry larger than it says', zipOf([{ ...START, bytes: 3 }]), 'is damaged: "START.md"'],
    ['with an entry smaller than it says', zipOf([{ ...START, bytes: 30 }]), 'is damaged: "START.md"'],
    ['with another compression', zipOf([{ ...START, method: 12 }]), 'unknown way (method 12)'],
    ['that is encrypted', zipOf([{ ...START, flags: 1 }]), 'is encrypted: "START.md"'],
    ['with a link', zipOf([START, { name: 'X.md', text: '/etc/passwd', mode: 0o120_777 }]), 'has the link "X.md"'],
    ['with a device', zipOf([{ ...START, mode: 0o020_644 }]), 'is not a regular file'],
    ['with an absolute path', zipOf([{ ...START, name: '/etc/x' }]), '"/etc/x", whose path leads out of it'],
    ['with a drive', zipOf([{ ...START, name: 'C:x' }]), 'leads out of it'],
    ['with a path above it', zipOf([{ ...START, name: 'a/../../x' }]), 'leads out of it'],
    ['with such a path of Windows', zipOf([{ ...START, name: String.raw`..\x` }]), 'leads out of it'],
    ['with a control character', zipOf([{ ...START, name: 'a\u0000b' }]), 'cannot be a file name'],
    ['with two entries of a name', zipOf([START, START]), 'has two entries "START.md"'],
    ['with a file that is a folder', zipOf([START, { name: 'START.md/x', text: '' }]), 'has both a file and a folder'],
    ['with too many entries', zipOf(Array.from({ length: 1001 }, (_, n) => ({ name: `f${n}`, text: '' }))), '1001 ent'],
    [
      'that unpacks to too much',
      zipOf(Array.from({ length: 6 }, (_, n) => ({ name: `f${n}`, text: Buffer.alloc(10_000_000) }))),
      'unpacks to more than the 50 MB',
    ],
    ['of the format Zip64', zipOf([{ ...START, bytes: 0xffffffff }]), 'Zip64'],
  ])('%s', (_what, zip, message) => {
    expect(problem(zip)).toContain(message);
  });

  test('or read, and never crashes, wherever a byte is wrong', () => {
    for (let at = 0; at < whole.length; at += 1) {
      for (const bits of [0x01, 0xff]) {
        const spoilt = Buffer.from(whole);
        spoilt[at] = (spoilt[at] ?? 0) ^ bits;
        readZip(spoilt);
      }
      readZip(whole.subarray(0, at));
    }
  });
});
