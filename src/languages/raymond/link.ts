// Links a workflow with those that its texts and policies refer to, and theirs. Each is opened once.

import type { Place } from '../../base/source.ts';
import { WORKFLOW_DEPTH_MAX } from '../../ir/answer-transitions.ts';
import { TAG_RULES } from '../../ir/machine.ts';
import { baseName } from '../language.ts';
import { findStart, freeId, stemOf, type TakenIds } from './names.ts';
import { openSource } from './open-source.ts';
import type { FindWorkflow, RaymondSource, StateSyntax, WorkflowSyntax } from './syntax.ts';

export interface LinkedWorkflow extends WorkflowSyntax {
  readonly machine: string;
  readonly prefix: string;
  /** Folder that its paths are relative to. */
  readonly home: string;
  /** Blocks of other workflows, by path as written. */
  readonly otherWorkflows: ReadonlyMap<string, string>;
  /** Keys of other workflows of this language, by path as written. */
  readonly otherKeys: ReadonlyMap<string, string>;
  /** Paths that were not found, and why. */
  readonly unknownPaths: ReadonlyMap<string, Problem>;
}

type Problem = Readonly<{ message: string; hint: string }>;

const FIRST = 'main';

/** The requested workflow comes first. `idPrefix`: prefix of its ids. */
export function linkWorkflows(
  source: RaymondSource,
  find: FindWorkflow,
  taken: TakenIds,
  idPrefix: string,
): readonly LinkedWorkflow[] {
  const machines: TakenIds = new Set([FIRST, idPrefix.replace(/-$/, '')]);
  const opened = new Map<string, Opened>();
  const open = (one: RaymondSource, depth: number, machine: string, prefix = `${machine}-`): Opened => {
    const workflow = openSource(one, prefix, taken);
    const now = { workflow, source: one, machine, prefix, depth };
    opened.set(one.key, now);
    return now;
  };
  open(source, 0, FIRST, idPrefix);
  const linked: LinkedWorkflow[] = [];
  // The loop also visits what it adds.
  for (const { source: from, workflow, machine, prefix, depth } of opened.values()) {
    const otherWorkflows = new Map<string, string>();
    const otherKeys = new Map<string, string>();
    const unknownPaths = new Map<string, Problem>();
    for (const path of new Set(pathsIn(workflow).map((each) => each.path))) {
      const found = find(from, path);
      if (found === null) unknownPaths.set(path, { message: `there is no workflow ${path}`, hint: PATH_HINT });
      else if (found.kind === 'refused') unknownPaths.set(path, found);
      else if (found.kind === 'found') otherWorkflows.set(path, found.entry);
      else if (depth >= WORKFLOW_DEPTH_MAX && !opened.has(found.source.key)) {
        const message = `${path} would be entered through more than ${String(WORKFLOW_DEPTH_MAX)} workflows`;
        unknownPaths.set(path, { message, hint: 'Enter it from a workflow that is nearer to the first.' });
      } else {
        const { key, name, start: wanted } = found.source;
        otherKeys.set(path, key);
        // `flows/research` and `flows/research.yaml` are `research`.
        const known = opened.get(key) ?? open(found.source, depth + 1, freeId(stemOf(baseName(name)), machines));
        const { report, states, names } = known.workflow;
        // A workflow reached by two paths may start at two states. One without states has been reported.
        const start = states.size === 0 ? null : findStart(report, wanted, states, names);
        if (start !== null) otherWorkflows.set(path, start.id);
        else unknownPaths.set(path, { message: `${path} has no state to begin with`, hint: 'See what is said of it.' });
      }
    }
    const home = from.kind === 'folder' ? from.key : from.key.replace(/\/[^/]*$/, '');
    linked.push({ ...workflow, home, machine, prefix, otherWorkflows, otherKeys, unknownPaths });
  }
  return linked;
}

interface Opened {
  readonly workflow: WorkflowSyntax;
  readonly source: RaymondSource;
  readonly machine: string;
  readonly prefix: string;
  readonly depth: number;
}

const PATH_HINT = 'Paths are relative to the folder of the workflow that contains them: ../research.';

interface PlacedPath {
  readonly path: string;
  readonly state: StateSyntax;
  readonly place: Place;
  readonly isPolicy: boolean;
}

/** Paths of other workflows in texts and policies. */
export function pathsIn({ states }: WorkflowSyntax): readonly PlacedPath[] {
  return [...states.values()].flatMap((state) => [
    ...state.mentionedTags.flatMap(({ target, place }) =>
      target?.kind === 'workflow' ? [{ path: target.path, state, place, isPolicy: false }] : [],
    ),
    ...(state.policy?.allowed ?? []).flatMap(({ tag, target, place }) =>
      TAG_RULES[tag].target === 'workflow' && target !== null ? [{ path: target, state, place, isPolicy: true }] : [],
    ),
  ]);
}
