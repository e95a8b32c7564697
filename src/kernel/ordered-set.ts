// A set that returns its earliest member by `order` in constant time, whatever its size (K6). A heap; deleted members
// stay in it until they reach the top.

export class OrderedSet<T extends { readonly order: number }> {
  readonly #members = new Set<T>();
  readonly #heap: T[] = [];

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
    this.#rise(this.#heap.length - 1);
  }

  delete(one: T): void {
    this.#members.delete(one);
  }

  clear(): void {
    this.#members.clear();
    this.#heap.length = 0;
  }

  first(): T | undefined {
    for (let top = this.#heap[0]; top !== undefined; top = this.#heap[0]) {
      if (this.#members.has(top)) return top;
      const last = this.#heap.pop();
      if (last === undefined || this.#heap.length === 0) break;
      this.#heap[0] = last;
      this.#sink();
    }
    return undefined;
  }

  #rise(from: number): void {
    let at = from;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (this.#orderAt(above) <= this.#orderAt(at)) return;
      this.#swap(at, above);
      at = above;
    }
  }

  #sink(): void {
    for (let at = 0; ; ) {
      const [left, right] = [2 * at + 1, 2 * at + 2];
      let least = at;
      if (this.#orderAt(left) < this.#orderAt(least)) least = left;
      if (this.#orderAt(right) < this.#orderAt(least)) least = right;
      if (least === at) return;
      this.#swap(at, least);
      at = least;
    }
  }

  #orderAt(index: number): number {
    return this.#heap[index]?.order ?? Infinity;
  }

  #swap(one: number, other: number): void {
    const [a, b] = [this.#heap[one], this.#heap[other]];
    if (a === undefined || b === undefined) return;
    this.#heap[one] = b;
    this.#heap[other] = a;
  }
}
