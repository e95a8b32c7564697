// The schedules of all projects as the page gets them.

import { atItsFolder } from '../app/list-workflows.ts';
import { unlessRefused } from '../app/runs.ts';
import { listedSchedules, recentRuns } from '../app/serve/schedules.ts';
import type { NamedRuns } from './named-runs.ts';
import type { ScheduleDocument, SchedulesDocument } from './protocol.ts';

const RECENT = 8;

export async function schedulesDocument(runs: NamedRuns): Promise<SchedulesDocument> {
  const ofProjects = runs.shown().projects.map(async (project): Promise<readonly ScheduleDocument[]> => {
    const listed = await unlessRefused(listedSchedules(atItsFolder(project)), []);
    return Promise.all(
      listed.map(async ({ name, cron, timezone, path, paused, next, problem }) => ({
        project: project.name,
        name,
        cron,
        timezone,
        path,
        paused,
        next,
        problem,
        recent: await recentRuns(project, name, RECENT),
      })),
    );
  });
  return { schedules: (await Promise.all(ofProjects)).flat() };
}
