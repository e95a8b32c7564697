// Sees to it that what a run has to tell people is sent: it announces the run, and starts a sender if there is none. The run
// waits for neither.

import { join } from 'node:path';

import { type NotifyConfig, sendsNotices } from '../languages/notify-config.ts';
import { liveHolder } from '../stores/lock.ts';
import { crash } from '../sys/errors.ts';
import type { Decision } from '../kernel/decision.ts';
import type { RunObserver } from './observer.ts';
import { sharedFolder } from './project.ts';
import { announceRun, announcements, startSender } from './sender/announcements.ts';

export interface RunNoticesOptions {
  /** Absolute. */
  readonly runFolder: string;
  readonly config: NotifyConfig;
  /** The trace of the run is sent when it has ended. */
  readonly isTraced: boolean;
  readonly environment: Readonly<Record<string, string>>;
  /** Rings, if a terminal shows the run. */
  readonly bell: () => void;
}

/** A run that is over by then starts a sender only if it has something to say. */
const START_MS = 1_000;

export function runNotices({ runFolder, config, isTraced, environment, bell }: RunNoticesOptions): RunObserver {
  const hasChannel = sendsNotices(config);
  let timer: NodeJS.Timeout | null = null;
  let hasNews = false;
  let hasTrace = false;
  const start = async (): Promise<void> => {
    if ((await liveHolder(join(sharedFolder(), 'sender.lock'))) === null) startSender(environment);
  };
  return {
    open() {
      if (hasChannel || isTraced) announceRun(runFolder);
      timer = setTimeout(() => {
        // What an earlier sender has left is sent by the next run, whatever that is.
        if (hasChannel || announcements().length > 0) void start().catch(crash);
      }, START_MS).unref();
    },
    observe(records) {
      if (isTraced && records.some(({ decisions }) => decisions.some(isEnd))) hasTrace = true;
      const news = records.flatMap(({ decisions }) => decisions.filter((each) => isNews(each, config)));
      if (news.length === 0) return;
      if (config.bell) bell();
      hasNews = true;
      if (hasChannel) start().catch(crash);
    },
    async close() {
      if (timer !== null) clearTimeout(timer);
      // It may have ended meanwhile.
      if ((hasChannel && hasNews) || hasTrace) await start();
    },
  };
}

function isEnd(decision: Decision): boolean {
  return decision.kind === 'run-ended' && decision.end !== 'paused';
}

/** Whether people are told of it; computed from the state, like everything that they are told (view/notices.ts). */
function isNews(decision: Decision, { on }: NotifyConfig): boolean {
  switch (decision.kind) {
    case 'gate-asked':
      return on.includes('gate') || on.includes('question');
    case 'step-progressed':
      return on.includes('question') && (decision.progress.dialog ?? null) !== null;
    case 'step-failed-once':
    case 'step-parked':
      return on.includes('limit') && decision.failure.kind === 'limit-reached';
    case 'run-ended':
      return decision.end !== 'stopped' && on.includes(decision.end);
    default:
      return false;
  }
}
