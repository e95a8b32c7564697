import { expect, test } from 'vitest';

import { isClean, readListing } from './listing.ts';

const ONE = '1'.repeat(40);
const TWO = '2'.repeat(40);
const NONE = '0'.repeat(40);

function listing(...records: readonly string[]) {
  return readListing(Buffer.from(records.map((record) => `${record}\0`).join(''), 'latin1'));
}

test('a clean tree has nothing that differs from HEAD', () => {
  const clean = listing(`# branch.oid ${ONE}`, '# branch.head meow/run-\xc3\xa9');
  expect(clean).toMatchObject({ head: ONE, branch: 'meow/run-é' });
  expect(isClean(clean)).toBe(true);
  expect(isClean(listing('? x'))).toBe(false);
});

test('HEAD may be detached, or have no commit', () => {
  expect(listing('# branch.oid (initial)', '# branch.head (detached)')).toMatchObject({ head: null, branch: null });
});

test('changed names are listed, whatever they contain', () => {
  const { changed, untracked, nested } = listing(
    `1 .M N... 100644 100644 100644 ${ONE} ${ONE} with two  spaces\nand a line`,
    `1 MM N... 100644 100755 100644 ${ONE} ${TWO} staged`,
    `1 D. N... 100644 000000 000000 ${ONE} ${NONE} gone`,
    `1 .A N... 000000 000000 100644 ${NONE} ${NONE} intended`,
    `1 .M SCM. 160000 160000 160000 ${ONE} ${ONE} sub`,
    `u UU N... 100644 100644 000000 100644 ${ONE} ${TWO} ${NONE} unmerged`,
    '? new',
    '? inner/',
  );
  expect(changed).toEqual(['with two  spaces\nand a line', 'staged', 'gone', 'intended', 'sub', 'unmerged']);
  expect([untracked, nested]).toEqual([['new'], ['inner']]);
});
