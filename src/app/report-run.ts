// The report of a run, for people without access to its folder.

import { CostEntries, costsBy } from '../view/cost-entries.ts';
import { reportPage } from '../view/report-page.ts';
import { statusView } from '../view/status.ts';
import { outputEnds } from './output-ends.ts';
import type { Project } from './project.ts';
import { readRun, resolveRun, storeOf } from './runs.ts';

/** Of each stream. */
const SHOWN_MAX = 4_000;

export async function reportRun(
  project: Project,
  wanted: string,
  at: number,
): Promise<{ readonly id: string; readonly html: string }> {
  const store = storeOf(project);
  const id = await resolveRun(store, wanted);
  const run = await readRun(store, id);
  const entries = new CostEntries();
  for (const record of run.records) entries.note(record);
  const outputs = Object.entries(await outputEnds(project, store, run)).flatMap(([attempt, ends]) =>
    ends.map(({ stream, from, text }) => {
      const isCut = from > 0 || text.length > SHOWN_MAX;
      return { attempt, stream, text: text.slice(-SHOWN_MAX).trimEnd(), isCut };
    }),
  );
  const costs = costsBy(entries.all, ({ step }) => step);
  const view = statusView(run.state, { id });
  return { id, html: reportPage({ id, view, costs, outputs, at: new Date(at).toISOString() }) };
}
