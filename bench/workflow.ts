// Workflows of many trivial steps, in the measured shapes.

import type { Program } from '../src/ir/program.ts';
import { compileMeow } from '../src/languages/meow/compile.ts';

/**
 * `wide`: no step needs another. `chain`: each needs the previous one. `fans`: of ten, nine need one, and the next
 * needs the nine.
 */
export type Shape = 'wide' | 'chain' | 'fans';

export function workflowText(shape: Shape, steps: number): string {
  const parts = ['[main]\nname = "bench"\n'];
  for (let index = 0; index < steps; index++) {
    const needs = needsOf(shape, index).map((need) => JSON.stringify(stepId(need)));
    parts.push(
      `[[main.steps]]\nid = "${stepId(index)}"\nexecutor = "shell"\ncommand = "true"\n` +
        (needs.length === 0 ? '' : `needs = [${needs.join(', ')}]\n`),
    );
  }
  return parts.join('\n');
}

export function compileShape(shape: Shape, steps: number): Program {
  const { program, diagnostics } = compileMeow({
    file: `${shape}.meow.toml`,
    text: workflowText(shape, steps),
    workflow: null,
    given: [],
  });
  if (program === null) throw new Error(diagnostics.map(({ message }) => message).join('\n'));
  return program;
}

export function stepId(index: number): string {
  return `step-${index}`;
}

const FAN = 10;

function needsOf(shape: Shape, index: number): readonly number[] {
  switch (shape) {
    case 'wide':
      return [];
    case 'chain':
      return index === 0 ? [] : [index - 1];
    case 'fans': {
      const head = index - (index % FAN);
      if (index !== head) return [head];
      return Array.from({ length: index === 0 ? 0 : FAN - 1 }, (_, nth) => index - 1 - nth);
    }
  }
}
