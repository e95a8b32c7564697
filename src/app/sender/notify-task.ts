// The notifications of one run: which messages there are, and which of them are due.
//
//   notify/1  Messages are computed from the journal, and their ids from facts in it. So nothing about them need be kept but what
//             has been sent.
//   notify/2  What a person has decided within `after` is not sent. What has been tried once is tried until it is sent.
//   notify/3  Nothing is sent about what is older than a day.

import { dirname, join } from 'node:path';

import { formatDuration, formatMoment } from '../../base/time.ts';
import { type Notice, Notices } from '../../view/notices.ts';
import { resumeArguments } from '../../view/status.ts';
import { pageLink } from '../page-address.ts';
import { redactorOfRun } from '../redact.ts';
import { Dispatcher, type NoticeFacts } from './dispatcher.ts';
import type { SendTask, SentRun, TaskMaker } from './sender.ts';
import { silentSteps } from './silent-steps.ts';

/** In the folder of the run. */
export const NOTIFIED_FILE = 'notified.jsonl';

/** A run without an engine may be about to get the next one. */
const LOST_GRACE_MS = 2_000;

export const notifyTask: TaskMaker = (runFolder, wake) => new NotifyTask(runFolder, wake);

class NotifyTask implements SendTask {
  readonly #dispatcher: Dispatcher;
  #notices: Notices | null = null;
  #lostSince: number | null = null;

  constructor(runFolder: string, wake: () => void) {
    this.#dispatcher = new Dispatcher(join(runFolder, NOTIFIED_FILE), wake);
  }

  pass(run: SentRun, now: number): { readonly wakeAt: number } | null {
    if (!this.#dispatcher.prepare(run.project)) return null;
    this.#notices ??= new Notices(run.program);
    this.#notices.advance(run.records);
    const stuck = this.#stuckNotices(run, now);
    const wakes = stuck.lookAt === null ? [] : [stuck.lookAt];
    for (const notice of [...this.#notices.all, ...stuck.notices]) {
      const at = this.#dispatcher.send(factsOf(run, notice), now);
      if (at !== null) wakes.push(at);
    }
    return wakes.length === 0 ? null : { wakeAt: Math.min(...wakes) };
  }

  #stuckNotices(run: SentRun, now: number): { readonly notices: readonly Notice[]; readonly lookAt: number | null } {
    const { id, state, records } = run;
    const last = records.at(-1);
    if (last === undefined || state.phase === 'ended') return { notices: [], lookAt: null };
    if (run.isLive) {
      this.#lostSince = null;
      const silent = silentSteps(run, now);
      return {
        lookAt: silent.lookAt,
        notices: silent.found.map(({ step, attempt, since, ms }) => ({
          key: `stuck:${step}:${attempt}:${since}`,
          kind: 'stuck',
          step,
          gate: null,
          text: `the agent of step ${step} has been silent for ${formatDuration(ms)}`,
          since,
          command: `meow why ${resumeArguments(id, step)}`,
          overAt: null,
        })),
      };
    }
    if (run.isResumed) return { notices: [], lookAt: now + LOST_GRACE_MS };
    this.#lostSince ??= now;
    if (now - this.#lostSince < LOST_GRACE_MS) return { notices: [], lookAt: this.#lostSince + LOST_GRACE_MS };
    const notice = {
      key: `stuck:${last.seq}`,
      kind: 'stuck',
      step: null,
      gate: null,
      text: 'its engine ended before the run did',
      since: last.at,
      command: `meow resume ${resumeArguments(id)}`,
      overAt: null,
    } as const;
    return { notices: [notice], lookAt: null };
  }
}

function factsOf({ id, folder, project, program, state }: SentRun, notice: Notice): NoticeFacts {
  const { kind, step, gate, text, since, command } = notice;
  return {
    ...notice,
    key: `${state.request?.mark ?? ''}\n${notice.key}`,
    compose: () => ({
      kind,
      run: id,
      project: dirname(project.meow),
      workflow: program.source.name,
      step,
      gate,
      text: redactorOfRun(folder).redact(text),
      since: formatMoment(since),
      command,
      url: pageLink(dirname(project.meow), id),
    }),
  };
}
