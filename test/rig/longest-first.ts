// Order of the test files: those that take longest start first, whatever their project, so that no core is idle at the
// end while one long file goes on. Files that are not listed follow, larger ones first.

import { statSync } from 'node:fs';
import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Longer than ten seconds on an idle machine; longest first. */
const LONGEST = [
  'test/attacks/git.test.ts',
  'test/attacks/twins.test.ts',
  'test/contracts/terminal-hostile.test.ts',
  'test/contracts/terminal-crash.test.ts',
  'test/contracts/terminal-delivery.test.ts',
  'test/contracts/terminal-left.test.ts',
  'test/contracts/terminal-dialogs.test.ts',
  'test/contracts/terminal-work.test.ts',
  'test/contracts/terminal-life.test.ts',
  'test/e2e/raymond-agents.test.ts',
  'test/e2e/examples.test.ts',
  'test/e2e/agents.test.ts',
  'test/e2e/examples-tested.test.ts',
  'test/attacks/planted-files.test.ts',
  'test/attacks/random.test.ts',
  'test/attacks/shortage.test.ts',
  'test/e2e/init.test.ts',
  'test/e2e/library.test.ts',
  'test/contracts/tmux.test.ts',
  'test/attacks/gates.test.ts',
  'test/contracts/opcode-work.test.ts',
  'test/e2e/conductor-killed.test.ts',
  'test/e2e/doctor.test.ts',
  'test/e2e/fork-rules.test.ts',
  'test/e2e/fork-sweep.test.ts',
  'test/e2e/interrupted.test.ts',
  'test/e2e/raymond-sessions.test.ts',
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = LONGEST.indexOf(relative(root, moduleId));
      return at === -1 ? LONGEST.length : at;
    };
    const size = ({ moduleId }: TestSpecification): number => statSync(moduleId).size;
    return files.toSorted((a, b) => groupOf(a) - groupOf(b) || rank(a) - rank(b) || size(b) - size(a));
  }
}

/** Projects of one group run together, and groups one after the other. */
function groupOf({ project }: TestSpecification): number {
  return project.config.sequence.groupOrder;
}
