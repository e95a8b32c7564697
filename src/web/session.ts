// What a page asks first: the version, the user, and the projects.

import { userInfo } from 'node:os';

import { tolerate } from '../sys/errors.ts';
import type { NamedRuns } from './named-runs.ts';
import { dirname } from 'node:path';
import type { SessionDocument } from './protocol.ts';

export interface ServerFacts {
  readonly version: string;
  readonly start: string;
  readonly build: string;
  readonly readOnly: boolean;
}

export function sessionDocument(facts: ServerFacts, runs: NamedRuns): SessionDocument {
  const { projects, remark } = runs.shown();
  return {
    ...facts,
    user: userName(),
    projects: projects.map(({ name, meow }) => ({ name, folder: dirname(meow) })),
    remarks: remark === null ? [] : [remark],
  };
}

/** Who decides. */
export function userName(): string {
  // The system has no name for this user.
  return tolerate(['ENOENT'], process.env['USER'] ?? 'somebody', () => userInfo().username);
}
