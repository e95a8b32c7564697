// Finds cycles in a graph, each as its edges.

/** One cycle per strongly connected part: fixing it either resolves the part or shows the next cycle. */
export function findCycles<Node, Edge extends { readonly to: Node }>(
  nodes: Iterable<Node>,
  edgesOf: (node: Node) => readonly Edge[],
): readonly (readonly Edge[])[] {
  const cycles: Edge[][] = [];
  const done = new Set<Node>();
  const depthOf = new Map<Node, number>();
  for (const start of nodes) {
    // Depth first without recursion: a chain may be as long as the file.
    const path: { readonly node: Node; readonly edges: readonly Edge[]; next: number }[] = [];
    const enter = (node: Node): void => {
      depthOf.set(node, path.length);
      path.push({ node, edges: edgesOf(node), next: 0 });
    };
    if (!done.has(start)) enter(start);
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const edge = top.edges[top.next++];
      if (edge === undefined) {
        done.add(top.node);
        depthOf.delete(top.node);
        path.pop();
      } else if (!done.has(edge.to)) {
        const depth = depthOf.get(edge.to);
        if (depth === undefined) enter(edge.to);
        else cycles.push(path.slice(depth).map(({ edges, next }) => edges[next - 1] ?? edge));
      }
    }
  }
  return cycles;
}
