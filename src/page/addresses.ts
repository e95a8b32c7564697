// Addresses of the page: what each shows, and how it is written. An address describes a whole view, so that it can be sent
// to somebody, and back and forward work.
//
//   address/1  A project or run may have any name: each is one encoded part of the path.
//   address/2  Whatever is not chosen is absent from the address.

import { RUN_VIEWS, type RunName, type RunViewName } from '../web/protocol.ts';

export const STEP_TABS = ['output', 'prompt', 'outputs', 'why', 'diff', 'cost', 'record'] as const;
export type StepTab = (typeof STEP_TABS)[number];

/** What is chosen on the page of a run. */
export interface RunSelection {
  readonly step: string | null;
  readonly attempt: number | null;
  readonly tab: StepTab | null;
  readonly line: number | null;
  /** The record shown; null: the last one. */
  readonly at: number | null;
  readonly agent: string | null;
}

export type Route =
  | { readonly kind: 'fleet' }
  /** `gate`: the one that is shown, as `PROJECT/RUN/GATE`. */
  | { readonly kind: 'inbox'; readonly gate: string | null }
  /** `file`: the workflow whose form is open, as `PROJECT/PATH`. */
  | { readonly kind: 'workflows'; readonly file: string | null }
  | { readonly kind: 'compare'; readonly a: RunName | null; readonly b: RunName | null }
  | { readonly kind: 'usage' }
  | { readonly kind: 'schedule' }
  | { readonly kind: 'run'; readonly of: RunName; readonly view: RunViewName; readonly selection: RunSelection }
  | { readonly kind: 'not-found'; readonly path: string };

export const NOTHING_SELECTED: RunSelection = {
  step: null,
  attempt: null,
  tab: null,
  line: null,
  at: null,
  agent: null,
};

export function parseAddress(path: string, query: string): Route {
  const parameters = new URLSearchParams(query);
  const parts = decodedParts(path);
  if (parts === null) return { kind: 'not-found', path };
  const [first = '', ...rest] = parts;
  if (first === 'p') return runRoute(rest, parameters) ?? { kind: 'not-found', path };
  if (rest.length > 0) return { kind: 'not-found', path };
  switch (first) {
    case '':
      return { kind: 'fleet' };
    case 'inbox':
      return { kind: 'inbox', gate: parameters.get('gate') };
    case 'workflows':
      return { kind: 'workflows', file: parameters.get('file') };
    case 'compare':
      return { kind: 'compare', a: parseRunName(parameters.get('a')), b: parseRunName(parameters.get('b')) };
    case 'usage':
    case 'schedule':
      return { kind: first };
    default:
      return { kind: 'not-found', path };
  }
}

/** Null if an escape in it is wrong. A slash at the end does not count. */
function decodedParts(path: string): readonly string[] | null {
  try {
    return path.replace(/^\//, '').replace(/\/$/, '').split('/').map(decodeURIComponent);
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}

function runRoute(parts: readonly string[], parameters: URLSearchParams): Route | null {
  const [project, r, run, view = 'timeline', ...rest] = parts;
  if (project === undefined || r !== 'r' || run === undefined || run === '' || rest.length > 0) return null;
  if (!isOneOf(RUN_VIEWS, view)) return null;
  const tab = parameters.get('tab');
  const selection: RunSelection = {
    step: parameters.get('step'),
    attempt: countOf(parameters.get('attempt')),
    tab: tab !== null && isOneOf(STEP_TABS, tab) ? tab : null,
    line: countOf(parameters.get('line')),
    at: countOf(parameters.get('at')),
    agent: parameters.get('agent'),
  };
  return { kind: 'run', of: { project, run }, view, selection };
}

export function runAddress(of: RunName, view: RunViewName = 'timeline', selection: Partial<RunSelection> = {}): string {
  const path = `/p/${encodeURIComponent(of.project)}/r/${encodeURIComponent(of.run)}/${view}`;
  return path + queryOf(selection);
}

/** Of gates in the inbox: gates of several runs can have the same id. */
export function gateKey(of: RunName, gate: string): string {
  return `${of.project}/${of.run}/${gate}`;
}

export function inboxAddress(gate: string): string {
  return `/inbox${queryOf({ gate })}`;
}

export function workflowAddress(file: string): string {
  return `/workflows${queryOf({ file })}`;
}

export function compareAddress(a: RunName, b: RunName | null): string {
  return `/compare${queryOf({ a: runNameText(a), b: b && runNameText(b) })}`;
}

function runNameText({ project, run }: RunName): string {
  return `${project}/${run}`;
}

/** `PROJECT/RUN`; a project's name has no slash. */
function parseRunName(text: string | null): RunName | null {
  const match = /^([^/]+)\/(.+)$/.exec(text ?? '');
  return match === null ? null : { project: match[1] ?? '', run: match[2] ?? '' };
}

function queryOf(values: Readonly<Record<string, string | number | null | undefined>>): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== null && value !== undefined) parameters.set(name, String(value));
  }
  // A slash needs no escape in a query, and people read addresses.
  return parameters.size === 0 ? '' : `?${parameters.toString().replaceAll('%2F', '/')}`;
}

/** A positive whole number; null for anything else. */
function countOf(text: string | null): number | null {
  return text !== null && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : null;
}

function isOneOf<T extends string>(names: readonly T[], name: string): name is T {
  return (names as readonly string[]).includes(name);
}
