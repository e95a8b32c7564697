// A toy language. Each line of a `*.lines` file is a step, `ID: COMMAND`, and the steps run one after the other. Lines that are
// empty or begin with `#` are skipped.

import { type Diagnostic, hasErrors, makeSource } from '../../../src/base/source.ts';
import type { EffectSpec } from '../../../src/ir/effect.ts';
import { NO_RETRY, type Program, type Step } from '../../../src/ir/program.ts';
import type { Text } from '../../../src/ir/text.ts';
import type { Language, Location } from '../../../src/languages/language.ts';
import { createReport } from '../../../src/languages/report.ts';

interface LinesSource extends Location {
  readonly text: string;
}

export const lines: Language<LinesSource> = {
  name: 'lines',
  hasSections: false,

  detect: (reader, path) => (path.endsWith('.lines') && reader.kindOf(path) === 'file' ? 'yes' : 'no'),

  load: (reader, location) => ({ ...location, text: reader.text(location.path) }),

  compile(source, { config }) {
    const { steps, diagnostics } = read(source);
    const program: Program = {
      format: 2,
      source: { language: 'lines', name: source.file },
      entry: 'main',
      blocks: { main: { name: 'main', parameters: [], steps, naming: 'path', visits: null } },
      cleanup: { success: null, failure: null, stop: null },
      limits: config.limits,
      drainMs: 0,
      onFailure: 'drain',
      machines: {},
      steerings: {},
      attachments: {},
    };
    return { program: hasErrors(diagnostics) ? null : program, diagnostics, fileVariables: [] };
  },

  validate: (source) => ({ diagnostics: read(source).diagnostics, notes: [] }),
};

function read({ file, text }: LinesSource): {
  readonly steps: readonly Step[];
  readonly diagnostics: readonly Diagnostic[];
} {
  const report = createReport(makeSource(file, text));
  const steps: Step[] = [];
  let from = 0;
  for (const line of text.split('\n')) {
    const [, id, command] = /^([A-Za-z0-9_-]+): (.+)$/.exec(line) ?? [];
    const place = { from, to: from + line.length };
    from = place.to + 1;
    if (line === '' || line.startsWith('#')) continue;
    if (id === undefined || command === undefined) {
      report.error('not-a-step', place, 'this line is not a step', 'Write ID: COMMAND.');
    } else if (steps.some((step) => step.id === id)) {
      report.error('duplicate-step', place, `a line above has the id ${id}`, 'Choose another id.');
    } else {
      steps.push(stepOf(id, command, steps.at(-1)?.id));
    }
  }
  return { steps, diagnostics: report.diagnostics() };
}

function stepOf(id: string, command: string, before: string | undefined): Step {
  return {
    id,
    executor: 'line',
    needs: before === undefined ? [] : [before],
    act: { kind: 'effect', effect: effectOf(command) },
    routes: {},
    unrouted: 'done',
    onError: { kind: 'fail' },
    retry: NO_RETRY,
    repromptsMax: 0,
    timeout: null,
    agent: null,
  };
}

function effectOf(script: string): EffectSpec<Text> {
  const captures = [{ name: 'text', from: { kind: 'stdout' }, type: 'string', required: true }] as const;
  return { kind: 'command', script, cwd: null, env: {}, captures, verdict: 'success', errors: [], steering: null };
}
