// What git's index holds that `git status` does not tell: names whose changes it was told not to look for, submodules, and how
// large files are in the working tree.
//
// `git update-index --assume-unchanged` and `--skip-worktree` hide changes from every look at the tree. An agent that hides
// its own is to be seen all the same, and no process is to be started for it: so the file is read here. A form that this
// does not know (a sparse index) is left to `git ls-files`. Pure.

export interface IndexMarks {
  /** Told not to look for, wherever it is: whatever is there has to be looked at. */
  readonly assumed: readonly string[];
  /** Not to be there (a sparse checkout); if it is, it has to be looked at. */
  readonly skipped: readonly string[];
  readonly submodules: readonly string[];
}

interface IndexEntry {
  readonly name: string;
  readonly isLink: boolean;
  readonly isAssumed: boolean;
  readonly isSkipped: boolean;
  /** Of the file in the working tree, when git last looked at it; 0 where it has not, or does not trust what it saw. */
  readonly size: number;
}

const FIXED_BYTES = 40;
const MODE_AT = 24;
const SIZE_AT = 36;
const ASSUMED = 0x8000;
const EXTENDED = 0x4000;
const SKIPPED = 0x4000;
const GITLINK = 0o160000;

/**
 * What this cannot tell: `split`, the index is in two files, of which this is one; `unknown`, it has another form.
 * `oidBytes`: 20 or 32.
 */
export function readIndexMarks(file: Buffer, oidBytes: number): IndexMarks | 'split' | 'unknown' {
  const marks = { assumed: [] as string[], skipped: [] as string[], submodules: [] as string[] };
  const form = readEntries(file, oidBytes, ({ name, isLink, isAssumed, isSkipped }) => {
    if (isLink) marks.submodules.push(name);
    else if (isSkipped) marks.skipped.push(name);
    else if (isAssumed) marks.assumed.push(name);
  });
  return form === 'whole' ? marks : form;
}

/** Sizes of files in the working tree, 0 where that is not known. Null where the form of the index is not known here. */
export function readIndexSizes(file: Buffer, oidBytes: number): ReadonlyMap<string, number> | null {
  const sizes = new Map<string, number>();
  const form = readEntries(file, oidBytes, ({ name, size }) => void sizes.set(name, size));
  return form === 'whole' ? sizes : null;
}

function readEntries(file: Buffer, oidBytes: number, take: (entry: IndexEntry) => void): 'whole' | 'split' | 'unknown' {
  if (file.length < 12 + oidBytes || file.toString('latin1', 0, 4) !== 'DIRC') return 'unknown';
  const version = file.readUInt32BE(4);
  if (version < 2 || version > 4) return 'unknown';
  const end = file.length - oidBytes;
  let at = 12;
  let name = '';
  for (let left = file.readUInt32BE(8); left > 0; left -= 1) {
    if (at + FIXED_BYTES + oidBytes + 4 > end) return 'unknown';
    const start = at;
    at += FIXED_BYTES + oidBytes;
    const flags = file.readUInt16BE(at);
    at += 2;
    const isExtended = (flags & EXTENDED) !== 0;
    const isSkipped = isExtended && (file.readUInt16BE(at) & SKIPPED) !== 0;
    if (isExtended) at += 2;
    const cut = version === 4 ? readOffset(file, at) : { value: name.length, next: at };
    const close = file.indexOf(0, cut.next);
    if (close === -1) return 'unknown';
    name = name.slice(0, name.length - cut.value) + file.toString('latin1', cut.next, close);
    at = version === 4 ? close + 1 : start + ((close - start + 8) & ~7);
    const isLink = (file.readUInt32BE(start + MODE_AT) & 0o170000) === GITLINK;
    take({ name, isLink, isSkipped, isAssumed: (flags & ASSUMED) !== 0, size: file.readUInt32BE(start + SIZE_AT) });
  }
  while (at + 8 <= end) {
    const extension = file.toString('latin1', at, at + 4);
    if (extension === 'link') return 'split';
    if (extension === 'sdir') return 'unknown';
    at += 8 + file.readUInt32BE(at + 4);
  }
  return 'whole';
}

/** The same from `git ls-files -s -v -z`. */
export function readMarkList(output: Buffer): IndexMarks {
  const marks = { assumed: [] as string[], skipped: [] as string[], submodules: [] as string[] };
  for (const record of output.toString('latin1').split('\0')) {
    const tab = record.indexOf('\t');
    const [tag = '', mode = ''] = record.slice(0, tab).split(' ');
    const name = record.slice(tab + 1);
    if (mode === '160000') marks.submodules.push(name);
    else if (/^[Ss]$/.test(tag)) marks.skipped.push(name);
    else if (/^[a-z]$/.test(tag)) marks.assumed.push(name);
  }
  return marks;
}

/** The varint of the index: each further byte counts from one more. */
function readOffset(file: Buffer, start: number): { readonly value: number; readonly next: number } {
  let at = start;
  let byte = file[at++] ?? 0;
  let value = byte & 0x7f;
  while ((byte & 0x80) !== 0) {
    byte = file[at++] ?? 0;
    value = ((value + 1) << 7) | (byte & 0x7f);
  }
  return { value, next: at };
}
