// One HTML file that shows a run without a server and without a network.
//
//   export/1  The file refers to nothing outside of itself, and its policy (CSP) lets it load nothing.
//   export/2  Text of the run cannot end the element that contains it: `<` is escaped in its JSON.

import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { outputEnds } from '../app/output-ends.ts';
import type { Project } from '../app/project.ts';
import { readRun, type Store } from '../app/runs.ts';
import { packageFolder } from '../app/sources.ts';
import { UsageError } from '../base/errors.ts';
import { tolerate } from '../sys/errors.ts';
import type { ExportDocument } from './protocol.ts';

/** As the build wrote it (scripts/build-page.mjs). */
const TEMPLATE = 'dist/ui/export.html';
/** Stands for the run in the template. */
const PLACE = '{{run}}';

export async function exportRun(
  project: Project,
  store: Store,
  id: string,
  { withOutputs, at }: { readonly withOutputs: boolean; readonly at: number },
): Promise<string> {
  const run = await readRun(store, id);
  const holder = await store.holder(id);
  const [first] = run.records[0]?.decisions ?? [];
  return withRun({
    name: { project: basename(run.state.request?.cwd ?? project.cwd), run: id },
    program: run.program,
    programHash: first?.kind === 'run-started' ? first.programHash : '',
    records: run.records.map(({ seq, at: recordedAt, decisions }) => ({ seq, at: recordedAt, decisions })),
    at,
    engine: holder,
    outputs: withOutputs ? await outputEnds(project, store, run) : {},
  });
}

function withRun(exported: ExportDocument): string {
  const file = join(packageFolder(), TEMPLATE);
  const template = tolerate(['ENOENT'], null, () => readFileSync(file, 'utf8'));
  if (template === null) throw new UsageError(`${file} is missing`, 'install meow again, or build it: npm run build');
  const json = JSON.stringify(exported).replaceAll('<', String.raw`\u003c`);
  const [before = '', after = ''] = template.split(PLACE);
  return `${before}${json}${after}`;
}
