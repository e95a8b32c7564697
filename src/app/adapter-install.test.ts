import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';

import { sourceOf } from './adapter-install.ts';

const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'meow-source-')));
mkdirSync(join(cwd, 'mine'));
mkdirSync(join(cwd, 'a#b'));
writeFileSync(join(cwd, 'adapter.toml'), '');
afterAll(() => rmSync(cwd, { recursive: true }));

describe('what is meant by a source', () => {
  test.each([
    ['mine', { kind: 'folder', path: join(cwd, 'mine') }],
    ['./mine', { kind: 'folder', path: join(cwd, 'mine') }],
    ['a#b', { kind: 'folder', path: join(cwd, 'a#b') }],
    ['./mine#v1', { kind: 'git', url: join(cwd, 'mine'), ref: 'v1' }],
    ['github.com/x/y', { kind: 'git', url: 'https://github.com/x/y', ref: null }],
    ['git.example.org:8443/x/y', { kind: 'git', url: 'https://git.example.org:8443/x/y', ref: null }],
    ['github.com/x/y#v1.2', { kind: 'git', url: 'https://github.com/x/y', ref: 'v1.2' }],
    ['https://example.org/x.git', { kind: 'git', url: 'https://example.org/x.git', ref: null }],
    ['git@github.com:x/y.git', { kind: 'git', url: 'git@github.com:x/y.git', ref: null }],
    ['ssh://git@example.org/x#feature/a', { kind: 'git', url: 'ssh://git@example.org/x', ref: 'feature/a' }],
    ['file:///srv/x', { kind: 'git', url: 'file:///srv/x', ref: null }],
  ])('%s', (text, source) => {
    expect(sourceOf(text, cwd)).toEqual(source);
  });
});

describe('what is none', () => {
  test.each([
    ['./nowhere', 'there is no folder'],
    ['/nowhere/at/all', 'there is no folder'],
    ['adapter.toml', 'is a file'],
    ['owner/repository', 'neither a folder nor'],
    ['fox', 'neither a folder nor'],
    ['-x@host:y', 'neither a folder nor'],
    ['github.com/x/y#--upload-pack=x', 'not a branch'],
  ])('%j', (text, message) => {
    expect(() => sourceOf(text, cwd)).toThrow(message);
  });
});
