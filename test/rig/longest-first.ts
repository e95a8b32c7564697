// Order of the test files: those that take longest start first, whatever their project, so that no core is idle at the
// end while one long file goes on. Files that are not listed follow by project, larger ones first: a process takes the
// next file if that is of the same project.

import { statSync } from 'node:fs';
import { relative } from 'node:path';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Longer than ten seconds on an idle machine; longest first. */
const LONGEST = [
  'test/attacks/git.test.ts',
  'test/e2e/examples-tested.test.ts',
  'test/attacks/twins.test.ts',
  'test/contracts/terminal-hostile.test.ts',
  'test/contracts/terminal-crash.test.ts',
  'test/contracts/terminal-delivery.test.ts',
  'test/contracts/terminal-left.test.ts',
  'test/contracts/terminal-dialogs.test.ts',
  'test/contracts/terminal-work.test.ts',
  'test/contracts/terminal-life.test.ts',
  'test/e2e/raymond-agents.test.ts',
  'test/e2e/fleet.test.ts',
  'test/contracts/postgres-store.test.ts',
  'test/e2e/examples.test.ts',
  'test/e2e/agents.test.ts',
  'test/e2e/merge-histories.test.ts',
  'test/e2e/merge.test.ts',
  'test/attacks/planted-files.test.ts',
  'test/attacks/random.test.ts',
  'test/attacks/shortage.test.ts',
  'test/e2e/init.test.ts',
  'test/schemas.test.ts',
  'test/e2e/library.test.ts',
  'test/contracts/tmux.test.ts',
  'test/attacks/gates.test.ts',
  'test/contracts/opcode-work.test.ts',
  'test/e2e/conductor-killed.test.ts',
  'test/e2e/top.test.ts',
  'test/e2e/doctor.test.ts',
  'test/e2e/fork-rules.test.ts',
  'test/e2e/fork-sweep.test.ts',
  'test/e2e/interrupted.test.ts',
  'test/e2e/serve.test.ts',
  'test/e2e/raymond-sessions.test.ts',
  'test/e2e/crash-sweep.test.ts',
  'test/e2e/conductor-sweep.test.ts',
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { root } = this.ctx.config;
    const rank = ({ moduleId }: TestSpecification): number => {
      const at = LONGEST.indexOf(relative(root, moduleId));
      return at === -1 ? LONGEST.length : at;
    };
    const size = ({ moduleId }: TestSpecification): number => statSync(moduleId).size;
    const isBefore = (a: TestSpecification, b: TestSpecification): number => (nameOf(a) < nameOf(b) ? -1 : 1);
    const byProject = (a: TestSpecification, b: TestSpecification): number =>
      nameOf(a) === nameOf(b) ? 0 : isBefore(a, b);
    return files.toSorted(
      (a, b) => groupOf(a) - groupOf(b) || rank(a) - rank(b) || byProject(a, b) || size(b) - size(a),
    );
  }
}

function nameOf({ project }: TestSpecification): string {
  return project.name;
}

/** Projects of one group run together, and groups one after the other. */
function groupOf({ project }: TestSpecification): number {
  return project.config.sequence.groupOrder;
}
