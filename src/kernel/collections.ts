// Collections that keep the cost of an input independent of the size of the run (K6): steps by the segments of their ids,
// a heap, and a set that knows its earliest member.

import { segmentMatcher } from '../base/names.ts';

export interface IdTree<T> {
  readonly below: Map<string, IdTree<T>>;
  value: T | null;
}

export function emptyTree<T>(): IdTree<T> {
  return { below: new Map(), value: null };
}

/** Returns the node of a prefix (`each.0.`); creates it if absent. */
export function descend<T>(tree: IdTree<T>, prefix: string): IdTree<T> {
  let node = tree;
  for (const segment of prefix.split('.').slice(0, -1)) node = getOrAdd(node.below, segment, emptyTree<T>);
  return node;
}

export function find<T>(tree: IdTree<T>, segments: readonly string[]): IdTree<T> | null {
  let node: IdTree<T> | undefined = tree;
  for (const segment of segments) node = node?.below.get(segment);
  return node ?? null;
}

export function matches<T>(tree: IdTree<T>, pattern: string): readonly IdTree<T>[] {
  if (!pattern.includes('*')) {
    const only = tree.below.get(pattern);
    return only === undefined ? [] : [only];
  }
  const fits = segmentMatcher(pattern);
  return [...tree.below].filter(([segment]) => fits(segment)).map(([, node]) => node);
}

/** Returns the value of a key. Adds it first if it is absent. */
export function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

/** A binary heap. Its first item has the lowest rank. */
export class Heap<T> {
  readonly #rank: (item: T) => number;
  readonly #items: T[] = [];

  constructor(rank: (item: T) => number) {
    this.#rank = rank;
  }

  get size(): number {
    return this.#items.length;
  }

  get first(): T | undefined {
    return this.#items[0];
  }

  clear(): void {
    this.#items.length = 0;
  }

  push(item: T): void {
    for (let at = this.#items.push(item) - 1; at > 0; ) {
      const above = (at - 1) >> 1;
      if (this.#rankAt(above) <= this.#rankAt(at)) return;
      at = this.#swap(at, above);
    }
  }

  pop(): void {
    const last = this.#items.pop();
    if (last === undefined || this.#items.length === 0) return;
    this.#items[0] = last;
    for (let at = 0; ; ) {
      const left = 2 * at + 1;
      const least = this.#rankAt(left + 1) < this.#rankAt(left) ? left + 1 : left;
      if (this.#rankAt(least) >= this.#rankAt(at)) return;
      at = this.#swap(at, least);
    }
  }

  #rankAt(index: number): number {
    const item = this.#items[index];
    return item === undefined ? Infinity : this.#rank(item);
  }

  /** Returns the new index of the first item. */
  #swap(from: number, to: number): number {
    const [moved, other] = [this.#items[from], this.#items[to]];
    if (moved !== undefined && other !== undefined) {
      this.#items[from] = other;
      this.#items[to] = moved;
    }
    return to;
  }
}

/** Knows its earliest member by `order`, at constant cost (K6). Deleted members stay in the heap until on top. */
export class OrderedSet<T extends { readonly order: number }> {
  readonly #members = new Set<T>();
  readonly #heap = new Heap<T>(({ order }) => order);

  get size(): number {
    return this.#members.size;
  }

  [Symbol.iterator](): Iterator<T> {
    return this.#members.values();
  }

  add(one: T): void {
    if (this.#members.has(one)) return;
    this.#members.add(one);
    this.#heap.push(one);
  }

  delete(one: T): void {
    this.#members.delete(one);
  }

  clear(): void {
    this.#members.clear();
    this.#heap.clear();
  }

  first(): T | undefined {
    while (this.#heap.first !== undefined && !this.#members.has(this.#heap.first)) this.#heap.pop();
    return this.#heap.first;
  }
}

/** Removes the oldest entry if there are more. */
export function dropOldest(entries: Map<string, unknown> | Set<string>, max: number): void {
  const [oldest] = entries.keys();
  if (entries.size > max && oldest !== undefined) entries.delete(oldest);
}
