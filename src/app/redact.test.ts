import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';

import { formsOf } from '../sys/secret-forms.ts';
import { leavePrints, PRINTS_FILE, redactorOfRun } from './redact.ts';

const folder = mkdtempSync(join(tmpdir(), 'redact-'));
beforeAll(() => void vi.stubEnv('HOME', folder));
afterAll(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const TOKEN = 'grünes Licht für alle/7';

test('another process finds secrets that it does not know', () => {
  leavePrints(folder, new Map([['DEPLOY_TOKEN', formsOf(TOKEN)]]));
  const redactor = redactorOfRun(folder);
  for (const form of formsOf(TOKEN).values()) {
    expect(redactor.redact(`ä ${form} ß`)).toMatch(/^ä •••DEPLOY_TOKEN\S* ß$/);
    const stream = redactor.stream();
    const pieces = [...Buffer.from(`ä ${form}\n`)].map((byte) => stream.push(Buffer.from([byte])));
    expect(Buffer.concat([...pieces, stream.end()]).toString()).toMatch(/^ä •••DEPLOY_TOKEN\S*\n$/);
  }
  expect(readFileSync(join(folder, PRINTS_FILE), 'utf8')).not.toContain(TOKEN);
});

test('a line is shown as soon as it is complete', () => {
  const stream = redactorOfRun(folder).stream();
  expect(stream.push(Buffer.from('12 tests\npassed')).toString()).toBe('12 tests\n');
});

test('earlier values stay masked, and secrets of the own environment are masked too', () => {
  leavePrints(folder, new Map([['DEPLOY_TOKEN', formsOf('a new value of the token')]]));
  vi.stubEnv('OTHER_PASSWORD', 'open sesame, please');
  const text = redactorOfRun(folder).redact(`${TOKEN}, a new value of the token, open sesame, please`);
  expect(text).toBe('•••DEPLOY_TOKEN, •••DEPLOY_TOKEN, •••OTHER_PASSWORD');
});

test('the end of a text begins with no part of a secret', () => {
  const redactor = redactorOfRun(folder);
  const text = `ä ${TOKEN} end`;
  expect(text.slice(redactor.wholeFrom(text, 6))).toBe(' end');
  expect(redactor.wholeFrom(text, 1)).toBe(1);
});
