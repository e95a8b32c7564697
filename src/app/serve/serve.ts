// What `meow serve` does while it runs: it resumes runs whose engine has died, starts schedules, and answers HTTP. It keeps nothing
// in memory that is needed later, so it may be killed at any moment.
//
//   serve/1  One for each user, by a lock that dies with its holder.
//   serve/2  It drives no run itself: engines are processes of their own, and survive it.
//   serve/3  It works when something changes or is due, and does nothing otherwise.

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { UsageError } from '../../base/errors.ts';
import { takeLock } from '../../stores/lock.ts';
import { makeFolder, writePrivate } from '../../sys/files.ts';
import { Sleeper } from '../../sys/sleeper.ts';
import { watchFolder } from '../../sys/watch.ts';
import { type Fleet, followFleet } from '../fleet.ts';
import { type Project, projectAt, sharedFolder } from '../project.ts';
import { projectsToShow } from '../projects.ts';
import { announceNotice, announceRun } from '../sender/announcements.ts';
import { runSender } from '../sender/sender.ts';
import { SEND_TASKS } from '../sender/tasks.ts';
import { readSettings } from '../sources.ts';
import { servedEnvironment } from './environment-file.ts';
import { Hooks } from './hooks.ts';
import { Metrics } from './metrics.ts';
import { Resumer } from './resume-runs.ts';
import { Retention } from './retention.ts';
import { scheduleFolder, type ScheduleFile, schedulesOf } from './schedule-files.ts';
import { type SchedulerOptions, startDueSlots } from './scheduler.ts';
import { type Handler, type Listening, serveRoutes } from './serve-routes.ts';
import { WatchTriggers } from './watch-triggers.ts';

export interface ServeOptions {
  /** Starts the HTTP server. `handler` answers some of its requests. */
  listen(handler: Handler): Promise<Listening>;
  /** Called once it answers. */
  ready(listening: Listening): void;
  /** A line for people. */
  note(line: string): void;
}

/** Resolves when `signal` aborts. Throws a UsageError if another one runs, or the port is in use. */
export async function serve(options: ServeOptions, signal: AbortSignal): Promise<void> {
  const shared = sharedFolder();
  makeFolder(shared);
  const lock = await lockServe(shared);
  try {
    const server = new Server(options, servedEnvironment());
    await server.run(signal);
  } finally {
    await lock.release();
  }
}

async function lockServe(shared: string): Promise<{ release(): Promise<void> }> {
  const answer = await takeLock(join(shared, 'serve.lock'));
  if (answer.kind === 'taken') return answer.lock;
  const holder = answer.by === null ? '' : ` (pid ${answer.by.pid}, since ${answer.by.takenAt})`;
  throw new UsageError(`meow serve is already running${holder}`, 'one for each user is enough: it serves all projects');
}

class Server {
  readonly #options: ServeOptions;
  readonly #environment: Readonly<Record<string, string>>;
  readonly #scheduling: SchedulerOptions;
  readonly #resumer: Resumer;
  readonly #triggers: WatchTriggers;
  /** Folders of runs that are not resumed any more. */
  readonly #stuck = new Set<string>();
  readonly #retention: Retention;
  readonly #watchers = new Map<string, { close(): void }>();
  #fleet: Fleet | null = null;
  #schedules: readonly ScheduleFile[] = [];
  readonly #sleeper = new Sleeper();

  constructor(options: ServeOptions, environment: Readonly<Record<string, string>>) {
    this.#options = options;
    this.#environment = environment;
    const note = (line: string): void => options.note(line);
    this.#scheduling = { environment, note, problem: announceProblem };
    this.#resumer = new Resumer({
      environment,
      note,
      stuck: (project, run, why) => {
        note(`run ${run} is stuck: ${why}`);
        const folder = join(project.runs, run);
        this.#stuck.add(folder);
        announceRun(folder);
      },
    });
    this.#triggers = new WatchTriggers(this.#scheduling);
    this.#retention = new Retention(note);
  }

  async run(signal: AbortSignal): Promise<void> {
    const hooks = new Hooks({
      environment: this.#environment,
      schedules: () => this.#schedules,
      note: (line) => this.#options.note(line),
    });
    this.#readSchedules();
    let token = '';
    const metrics = new Metrics({
      token: () => token,
      projects: () => projectsToShow([]).projects,
      view: () => this.#fleet?.view ?? null,
    });
    const listening = await this.#options.listen(serveRoutes(hooks, metrics));
    ({ token } = listening);
    const shared = sharedFolder();
    writePrivate(join(shared, 'serve.token'), `${listening.token}\n`);
    const onAbort = (): void => this.#sleeper.wake();
    signal.addEventListener('abort', onAbort);
    try {
      this.#options.ready(listening);
      const following = this.#followFleet(signal);
      const sending = this.#send(signal);
      while (!signal.aborted) await this.#sleeper.sleep(await this.#pass());
      await Promise.all([following, sending]);
    } finally {
      signal.removeEventListener('abort', onAbort);
      this.#triggers.close();
      for (const watcher of this.#watchers.values()) watcher.close();
      await listening.close();
    }
  }

  #send(signal: AbortSignal): Promise<void> {
    const isResumed = (folder: string): boolean => {
      const meow = dirname(dirname(folder));
      return !this.#stuck.has(folder) && existsSync(`${folder}.yaml.lock`) && resumes(projectAt(meow));
    };
    return runSender({ tasks: SEND_TASKS, isDetached: false, isResumed }, signal);
  }

  async #followFleet(signal: AbortSignal): Promise<void> {
    for await (const fleet of followFleet([], signal)) {
      this.#fleet = fleet;
      this.#sleeper.wake();
    }
  }

  /** Returns the moment of the next pass; null if only a change can bring work. */
  async #pass(): Promise<number | null> {
    this.#readSchedules();
    const projects = projectsToShow([]).projects;
    const wakes = await Promise.all(projects.map((project) => startDueSlots(project, this.#scheduling)));
    this.#triggers.pass(this.#schedules, this.#fleet);
    if (this.#fleet !== null) wakes.push(await this.#resumer.pass(resumable(this.#fleet)));
    wakes.push(await this.#retention.pass(projects, Date.now()));
    const moments = wakes.filter((wake) => wake !== null);
    return moments.length === 0 ? null : Math.min(...moments);
  }

  /** Follows the folders of schedules, too. */
  #readSchedules(): void {
    const { projects } = projectsToShow([]);
    for (const project of projects) {
      const folder = scheduleFolder(project);
      if (!this.#watchers.has(folder))
        this.#watchers.set(
          folder,
          watchFolder(folder, () => this.#sleeper.wake()),
        );
    }
    this.#schedules = projects.flatMap((project) => schedulesOf(project));
  }
}

/** A schedule that cannot be started is told once: the scheduler remembers the problem. */
function announceProblem({ name, project, schedule }: ScheduleFile, why: string): void {
  const since = Date.now();
  announceNotice({
    key: `schedule\n${project.meow}\n${name}\n${since}`,
    kind: 'failed',
    project: project.meow,
    workflow: schedule?.path ?? null,
    text: `schedule ${name} cannot be started: ${why}`,
    command: `meow schedule run ${name}`,
    since,
  });
}

/** Without the runs of projects that say `[serve] resume = false`. */
function resumable(fleet: Fleet): Fleet {
  const off = new Set(fleet.projects.flatMap((project) => (resumes(project) ? [] : [project.name])));
  return off.size === 0
    ? fleet
    : { ...fleet, view: { ...fleet.view, runs: fleet.view.runs.filter(({ project }) => !off.has(project)) } };
}

function resumes(project: Project): boolean {
  return readSettings({ ...project, cwd: dirname(project.meow) }).config.serve.resume;
}
