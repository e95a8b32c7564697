// Links a workflow with those that its texts and policies refer to, and theirs. Each is opened once.

import type { Place } from '../../base/source.ts';
import { TAG_RULES } from '../../ir/machine.ts';
import { WORKFLOW_DEPTH_MAX } from '../../ir/answer-transitions.ts';
import type { Report } from '../report.ts';
import { openFolder } from './folder.ts';
import type { TakenIds } from './names.ts';
import { freeId, stemOf } from './names.ts';
import { openSingle } from './single-file.ts';
import type { FindWorkflow, RaymondSource } from './source.ts';
import { findStart } from './start.ts';
import type { OpenedWorkflow, StateSyntax, WorkflowSyntax } from './syntax.ts';

export interface Linked {
  /** The requested workflow comes first. */
  readonly workflows: readonly LinkedWorkflow[];
  readonly reports: readonly Report[];
}

export interface LinkedWorkflow extends WorkflowSyntax {
  /** Name of its machine in the Program. */
  readonly machine: string;
  /** Prefix of its ids. */
  readonly prefix: string;
  /** Blocks of other workflows, by path as written. */
  readonly otherWorkflows: ReadonlyMap<string, string>;
  /** Paths that were not found, and why. */
  readonly unknownPaths: ReadonlyMap<string, { readonly message: string; readonly hint: string }>;
}

const FIRST = 'main';

/** `idPrefix`: prefix of the ids of the first workflow. */
export function linkWorkflows(source: RaymondSource, find: FindWorkflow, taken: TakenIds, idPrefix: string): Linked {
  const machines: TakenIds = new Set([FIRST, idPrefix.replace(/-$/, '')]);
  const opened = new Map<string, OpenedWorkflow>();
  const reports: Report[] = [];
  const linked: LinkedWorkflow[] = [];
  const open: Waiting[] = [];
  const enter = (one: RaymondSource, machine: string, prefix: string, depth: number): WorkflowSyntax => {
    const known = opened.get(one.key);
    if (known !== undefined) return known.workflow;
    const now = one.kind === 'folder' ? openFolder(one, prefix, taken) : openSingle(one, prefix, taken);
    opened.set(one.key, now);
    for (const report of now.reports) reports.push(report);
    open.push({ source: one, workflow: now.workflow, machine, prefix, depth });
    return now.workflow;
  };
  enter(source, FIRST, idPrefix, 0);
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    const { source: from, workflow, machine, prefix, depth } = next;
    const otherWorkflows = new Map<string, string>();
    const unknownPaths = new Map<string, { readonly message: string; readonly hint: string }>();
    for (const path of pathsIn(workflow)) {
      const found = find(from, path);
      if (found === null) unknownPaths.set(path, { message: `there is no workflow ${path}`, hint: PATH_HINT });
      else if (found.kind === 'refused') unknownPaths.set(path, found);
      else if (found.kind === 'found') otherWorkflows.set(path, found.entry);
      else if (depth >= WORKFLOW_DEPTH_MAX && !opened.has(found.source.key)) {
        const message = `${path} would be entered through more than ${String(WORKFLOW_DEPTH_MAX)} workflows`;
        unknownPaths.set(path, { message, hint: 'Enter it from a workflow that is nearer to the first.' });
      } else {
        const isKnown = opened.has(found.source.key);
        const named = isKnown ? '' : freeId(lastPart(found.source.name), machines);
        const other = enter(found.source, named, `${named}-`, depth + 1);
        // A workflow reached by two paths may start at two states. One without states has been reported.
        const start =
          other.states.size === 0 ? null : findStart(other.report, found.source.start, other.states, other.names);
        if (start !== null) otherWorkflows.set(path, start.id);
        else unknownPaths.set(path, { message: `${path} has no state to begin with`, hint: 'See what is said of it.' });
      }
    }
    linked.push({ ...workflow, machine, prefix, otherWorkflows, unknownPaths });
  }
  return { workflows: linked, reports };
}

interface Waiting {
  readonly source: RaymondSource;
  readonly workflow: WorkflowSyntax;
  readonly machine: string;
  readonly prefix: string;
  readonly depth: number;
}

const PATH_HINT = 'Paths are seen from the folder of the workflow that they stand in: ../research.';

function pathsIn({ states }: WorkflowSyntax): ReadonlySet<string> {
  const paths = new Set<string>();
  for (const { mentionedTags, policy } of states.values()) {
    for (const { target } of mentionedTags) if (target?.kind === 'workflow') paths.add(target.path);
    for (const { tag, target } of policy?.allowed ?? []) {
      if (TAG_RULES[tag].target === 'workflow' && target !== null) paths.add(target);
    }
  }
  return paths;
}

/** `flows/research` and `flows/research.yaml` are `research`. */
function lastPart(name: string): string {
  return stemOf(name.replace(/\/+$/, '').replace(/^.*\//, ''));
}

/** Positions of a path, for messages about it. */
export function placesOfPath(
  { states }: WorkflowSyntax,
  path: string,
): readonly { readonly state: StateSyntax; readonly place: Place; readonly isPolicy: boolean }[] {
  return [...states.values()].flatMap((state) => [
    ...state.mentionedTags.flatMap(({ target, place }) =>
      target?.kind === 'workflow' && target.path === path ? [{ state, place, isPolicy: false }] : [],
    ),
    ...(state.policy?.allowed ?? []).flatMap(({ tag, target, place }) =>
      TAG_RULES[tag].target === 'workflow' && target === path ? [{ state, place, isPolicy: true }] : [],
    ),
  ]);
}
