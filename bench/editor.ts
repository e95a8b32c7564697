// Questions of an editor about a file of 2,000 lines, right after a key press.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { EditorWorkspace } from '../src/app/editor.ts';
import { makeSource } from '../src/base/source.ts';
import { createReport } from '../src/languages/report.ts';
import { readToml } from '../src/languages/toml.ts';
import { readYaml } from '../src/languages/yaml-tree.ts';
import type { Figure, Measurement } from './measure.ts';
import { atMost, duration, figure, interleaveWarm, median } from './measure.ts';

const LINES = 2_000;
const MORE_ROUNDS = 4;

export const editor: Measurement = {
  name: 'editor',
  method: `A MEOW workflow of ${LINES.toLocaleString('en')} lines in an open buffer. Each question follows a change of the text, so that nothing of the text before it is reused: all problems; completion of a placeholder; the places that a renamed step is named at. The same completion in a Conductor workflow of that length. For comparison, reading the TOML and the YAML alone. ${MORE_ROUNDS} times the rounds of the other measurements.`,
  async measure({ rounds, folder }) {
    const path = join(folder, 'long.meow.toml');
    const text = longWorkflow();
    writeFileSync(path, text);
    let count = 0;
    let buffer = text;
    const yamlPath = join(folder, 'long.yaml');
    const yamlText = longConductor();
    let yaml = yamlText;
    writeFileSync(yamlPath, yamlText);
    const workspace = new EditorWorkspace(folder, {
      textOf: (asked) => (asked === path ? buffer : asked === yamlPath ? yaml : null),
      paths: () => [path, yamlPath],
    });
    const afterChange =
      (ask: () => void, changed = path) =>
      (): number => {
        count += 1;
        if (changed === path) buffer = `${text}# ${count}\n`;
        else yaml = `${yamlText}# ${count}\n`;
        workspace.changed(changed);
        const began = performance.now();
        ask();
        return performance.now() - began;
      };
    const middle = text.indexOf('{{', text.length / 2) + 2;
    const route = yamlText.indexOf('completed: ', yamlText.length / 2) + 'completed: '.length;
    const samples = await interleaveWarm(rounds * MORE_ROUNDS, {
      problems: afterChange(() => workspace.problemsOf(path)),
      completion: afterChange(() => workspace.suggest(path, middle)),
      renaming: afterChange(() => {
        const found = workspace.symbolAt(path, middle);
        if (found === null) throw new Error('no step is named there');
        workspace.renamed(path, found.definitions, 'other');
      }),
      conductor: afterChange(() => workspace.suggest(yamlPath, route), yamlPath),
      reading: afterChange(() => readToml(createReport(makeSource(path, buffer)))),
      readingYaml: afterChange(() => {
        const report = createReport(makeSource(yamlPath, yaml));
        readYaml(report, { from: 0, to: yaml.length });
      }),
    });
    const toml = `${duration(median(samples.reading))} to read the TOML`;
    const answer = (what: string, values: readonly number[], against = toml): Figure =>
      figure({
        what: `editor: ${what} in a file of ${LINES.toLocaleString('en')} lines`,
        measured: duration(median(values)),
        against,
        values: [...values],
        unit: 'ms',
        target: atMost(50),
        samples,
      });
    return [
      answer('problems', samples.problems),
      answer('completion', samples.completion),
      answer('renaming a step', samples.renaming),
      answer('completion of a route', samples.conductor, `${duration(median(samples.readingYaml))} to read the YAML`),
    ];
  },
};

function longWorkflow(): string {
  const step = (n: number): string => `
[[main.steps]]
id = "step-${n}"
executor = "shell"
command = "echo {{step-${n === 0 ? 1 : n - 1}.outputs.text}}"
needs = [${n === 0 ? '' : `"step-${n - 1}"`}]
outputs = { text = { source = "stdout", type = "string" } }
`;
  return Array.from({ length: Math.ceil(LINES / 7) }, (_, n) => step(n)).join('');
}

function longConductor(): string {
  const steps = Math.ceil(LINES / 8);
  const step = (_: unknown, n: number): string => `  - id: s${n}
    opcode: RUN_AGENT
    agent: sim
    prompt: Work on it.
    inputs: [diff]
    routes:
      completed: s${(n + 1) % steps}
      error: STOP
`;
  const head = 'workflow_id: w\nversion: 1\ndescription: Long.\nentry_step: s0\nsteps:\n';
  return `${head}${Array.from({ length: steps }, step).join('')}`;
}
