// Steps indexed by the segments of their ids, so that a need with wildcards visits few steps besides its matches.

import { segmentMatcher } from '../base/segment-pattern.ts';

export interface IdTree<T> {
  readonly below: Map<string, IdTree<T>>;
  value: T | null;
}

export function emptyTree<T>(): IdTree<T> {
  return { below: new Map(), value: null };
}

export function insert<T>(tree: IdTree<T>, id: string, value: T): void {
  descend(tree, `${id}.`).value = value;
}

/** Returns the node of a prefix (`each.0.`); creates it if absent. */
export function descend<T>(tree: IdTree<T>, prefix: string): IdTree<T> {
  let node = tree;
  for (const segment of prefix.split('.').slice(0, -1)) {
    let next = node.below.get(segment);
    if (next === undefined) {
      next = emptyTree();
      node.below.set(segment, next);
    }
    node = next;
  }
  return node;
}

export function find<T>(tree: IdTree<T>, segments: readonly string[]): IdTree<T> | null {
  let node: IdTree<T> | undefined = tree;
  for (const segment of segments) {
    node = node.below.get(segment);
    if (node === undefined) return null;
  }
  return node;
}

/** Child nodes whose segment matches the pattern. */
export function matches<T>(tree: IdTree<T>, pattern: string): readonly IdTree<T>[] {
  if (!pattern.includes('*')) {
    const only = tree.below.get(pattern);
    return only === undefined ? [] : [only];
  }
  const fits = segmentMatcher(pattern);
  return [...tree.below].filter(([segment]) => fits(segment)).map(([, node]) => node);
}
