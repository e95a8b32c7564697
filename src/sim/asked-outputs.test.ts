import { describe, expect, test } from 'vitest';
import { promptText } from '../ir/prompt-text.ts';
import type { Expectation } from '../ir/output.ts';
import { askedOutputs } from './headless.ts';

const EXPECTS: readonly Expectation[] = [
  { name: 'title', type: 'string', required: true, description: null },
  { name: 'tasks', type: 'json', required: false, description: 'a list: [{id, (name)}]' },
  { name: 'report-file', type: 'file_path', required: true, description: 'where it is' },
];

describe('what a prompt asks for', () => {
  test.each([[[]], [EXPECTS.slice(0, 1)], [EXPECTS]])('is read from its text: %#', (expects) => {
    for (const prompt of ['Do it.', 'Do it.\n\nExpected outputs:\nnone', 'a\nb', '']) {
      expect(askedOutputs(promptText(prompt, 'autonomous', expects))).toEqual({ prompt, reports: true, expects });
    }
  });

  test('is nothing where it asks for no report', () => {
    const prompt = 'Run meow done when you like.\nReport when done:\n  by mail';
    expect(askedOutputs(prompt)).toEqual({ prompt, reports: false, expects: [] });
  });
});
