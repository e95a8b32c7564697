import fc from 'fast-check';
import { describe, expect, test } from 'vitest';

import { referencedNames } from '../base/secret-reference.ts';
import { formsOf } from './secret-forms.ts';
import { Secrets } from './secrets.ts';

const TOKEN = 'correct horse/battery+staple"7';
const secrets = new Secrets(new Map([['DEPLOY_TOKEN', TOKEN]]));

describe('masking', () => {
  test('a value becomes the name of its variable', () => {
    expect(secrets.mask(`token: ${TOKEN}\n`)).toBe('token: •••DEPLOY_TOKEN\n');
    expect(secrets.mask(`${TOKEN}s`)).toBe('•••DEPLOY_TOKEN\u2060s');
  });

  test('other forms of it are masked and come back as they were', () => {
    for (const [id, form] of formsOf(TOKEN)) {
      const text = `before ${form} after`;
      const masked = secrets.mask(text);
      expect(masked).toContain(id === '' ? '•••DEPLOY_TOKEN' : '•••DEPLOY_TOKEN:');
      expect(masked).not.toContain(form);
      expect(secrets.reveal(masked)).toBe(text);
    }
  });

  test('base64 of a longer text shows neither the value nor its base64', () => {
    for (const user of ['', 'a', 'ab', 'abc', 'someone:']) {
      for (const encoding of ['base64', 'base64url'] as const) {
        const text = Buffer.from(`${user}${TOKEN}@host`).toString(encoding);
        const masked = secrets.mask(text);
        expect(masked).toMatch(/•••DEPLOY_TOKEN:[bu]64/);
        expect(secrets.reveal(masked)).toBe(text);
      }
    }
  });

  test('text from outside cannot name a secret, whole or in parts', () => {
    const texts = ['•••DEPLOY_TOKEN', '•', '••', '•••', 'DEPLOY_TOKEN', '•DEPLOY_TOKEN', '•\u2060', '• item'];
    for (const one of texts) {
      for (const other of texts) {
        const joined = secrets.mask(one) + secrets.mask(other);
        expect(referencedNames(joined)).toEqual([]);
        expect(secrets.reveal(joined)).toBe(one + other);
      }
    }
  });

  test('any text comes back, and shows no secret', () => {
    const parts = fc.constantFrom('•', '\u2060', ':', 'A', '_', ' ', 'b64', '-', TOKEN, ...formsOf(TOKEN).values());
    fc.assert(
      fc.property(fc.array(fc.oneof(parts, fc.string()), { maxLength: 12 }), (pieces) => {
        const text = pieces.join('');
        const masked = secrets.mask(text);
        for (const form of formsOf(TOKEN).values()) expect(masked).not.toContain(form);
        expect(secrets.reveal(masked)).toBe(text);
        const bytes = secrets.maskingStream();
        const cut = Math.floor(text.length / 2);
        const streamed = [text.slice(0, cut), text.slice(cut)].map((piece) => bytes.push(Buffer.from(piece, 'utf8')));
        const whole = Buffer.concat([...streamed, bytes.end()]).toString();
        for (const form of formsOf(TOKEN).values()) expect(whole).not.toContain(form);
        if (!/[\ud800-\udfff]/.test(text)) expect(secrets.reveal(whole)).toBe(text);
      }),
    );
  });
});

describe('known kinds', () => {
  const kinds = new Secrets(new Map([['GITHUB', 'a value of that name']]));
  const letters = 'abcdefghijklmnopqrstuvwxyz0123456789';
  // Joined, so that no scanner of repositories takes this file for a leak.
  const joined = (...parts: readonly string[]): string => parts.join('');
  test.each([
    ['ANTHROPIC', joined('sk-', 'ant-api03-', letters)],
    ['OPENAI', joined('sk-', 'proj-', letters)],
    ['GITHUB_KIND', joined('gh', 'p_', letters)],
    ['AWS', joined('AK', 'IAABCDEFGHIJKLMNOP')],
    ['SLACK', joined('xox', 'b-1234567890-', letters)],
    [
      'PRIVATE_KEY',
      joined('-----BEGIN RSA ', `PRIVATE KEY-----\n${letters}\n${letters}\n-----END RSA PRIVATE KEY-----`),
    ],
  ])('%s is found by its form', (label, token) => {
    const found: string[] = [];
    kinds.onKind = (kind) => found.push(kind);
    expect(kinds.mask(`key=${token}\n`)).toBe(`key=•••${label}\n`);
    expect(kinds.reveal(kinds.mask(token))).toBe(`•••${label}`);
    expect(kinds.mask(JSON.stringify(`\n${token}`))).not.toContain(letters);
    expect(found).toContain(label);
    const stream = kinds.stream();
    const pieces = [...Buffer.from(`a ${token} b`)].map((byte) => stream.push(Buffer.from([byte])));
    expect(Buffer.concat([...pieces, stream.end()]).toString()).toBe(`a •••${label} b`);
  });

  test('ids and words of other programs are none', () => {
    const harmless = ['task-0123456789abcdef0123456789abcdef', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4', 'risk-free'];
    for (const text of harmless) expect(kinds.mask(text)).toBe(text);
  });
});
