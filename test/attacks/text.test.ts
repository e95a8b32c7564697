// Texts that are made to keep `meow validate` busy. Judged by a bound that only a quadratic or cubic algorithm exceeds: each
// took ten to a hundred times as long once.

import { describe, expect, test } from 'vitest';
import { Rig } from '../rig/rig.ts';

/** A busy machine needs a few seconds for a second of work. */
const BOUND_MS = 25_000;

function steps(count: number, step: (at: number) => string): string {
  return `[main]\n${Array.from({ length: count }, (_, at) => `[[main.steps]]\nexecutor = "shell"\ncommand = "true"\n${step(at)}`).join('')}`;
}

const HEAD = 'workflow_id: w\nversion: 1\n';

const texts: Readonly<Record<string, readonly [file: string, text: () => string]>> = {
  'a wildcard that every step matches (cubic)': [
    'w.meow.toml',
    () => steps(1_200, (at) => `id = "s${at}"\nneeds = ["s*"]\n`),
  ],
  'wildcards that nearly match long ids': [
    'w.meow.toml',
    () => steps(1_200, (at) => `id = "${'a'.repeat(100)}${at}"\nneeds = ["${'*a'.repeat(60)}b"]\n`),
  ],
  'unknown steps with the letters of every other': [
    'w.meow.toml',
    () => steps(1_200, (at) => `id = "a${at}${'bc'.repeat(48)}"\nneeds = ["b${at}${'cb'.repeat(48)}"]\n`),
  ],
  'unknown keys (quadratic)': [
    'w.yaml',
    () => `${HEAD}${Array.from({ length: 50_000 }, (_, at) => `k${at}: 1\n`).join('')}`,
  ],
  'lines of backslashes': ['w.yaml', () => `${HEAD}description: "${'\\\n'.repeat(300_000)}"\n`],
  'nested brackets': ['w.yaml', () => `${HEAD}steps: ${'['.repeat(100_000)}`],
  'nested tables': ['w.meow.toml', () => `[main]\nx = ${'['.repeat(100_000)}`],
};

describe('is validated in time', () => {
  test.for(Object.entries(texts))('%s', async ([, [file, text]]) => {
    await using rig = await Rig.setup();
    rig.write(file, text());
    const began = performance.now();
    const { code, stderr } = await rig.meow('validate', file);
    expect(performance.now() - began).toBeLessThan(BOUND_MS);
    expect([0, 1]).toContain(code);
    expect(stderr).not.toContain('bug in meow');
  });
});
