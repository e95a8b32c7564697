// What a page asks first: the version, the user, and the projects.

import { dirname } from 'node:path';

import { userName } from '../app/user-name.ts';
import type { NamedRuns } from './named-runs.ts';
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
