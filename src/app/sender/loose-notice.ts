// What people are told of a project and none of its runs, such as a schedule that cannot be started.

import { dirname } from 'node:path';

import { formatMoment } from '../../base/time.ts';
import { pageLink } from '../page-address.ts';
import { projectAt } from '../project.ts';
import type { LooseNotice } from './announcements.ts';
import { Dispatcher } from './dispatcher.ts';

/** `attempts`: the file of attempts to send it. */
export function looseNotice(
  notice: LooseNotice,
  attempts: string,
  wake: () => void,
): { pass(): Promise<number | null>; close(): void } {
  const { project: meow, kind, workflow, text, command, since, key } = notice;
  const dispatcher = new Dispatcher(attempts, wake);
  const compose = (): ReturnType<Parameters<Dispatcher['send']>[0]['compose']> => ({
    kind,
    run: null,
    project: dirname(meow),
    workflow,
    step: null,
    gate: null,
    text,
    since: formatMoment(since),
    command,
    url: pageLink(dirname(meow), null),
  });
  return {
    pass() {
      const isHeard = dispatcher.prepare(projectAt(meow));
      // Nobody has to decide, so it is not repeated.
      const facts = { key, kind, since, overAt: Infinity, compose };
      return Promise.resolve(isHeard ? dispatcher.send(facts, Date.now()) : null);
    },
    close() {},
  };
}
