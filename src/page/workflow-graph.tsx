// A workflow as written, as a picture: its steps and what they need.

import type { Program } from '../ir/program.ts';
import { foldGroups, type GraphNode, programGraph } from '../view/graph.ts';
import { type Box, layOut } from '../view/layout.ts';
import type { WorkflowDocument } from '../web/protocol.ts';
import { useDocument } from './document-store.ts';
import { pathOf } from './edge-path.ts';
import { line } from './shown-text.ts';

const HEIGHT = 46;
const CHARACTER = 7.4;
const SMALL_CHARACTER = 6.4;
const LABEL_HEIGHT = 14;
const NAME_MAX = 36;
const MARGIN = 20;

export function WorkflowGraph({ of: { project, path, workflow } }: { readonly of: WorkflowDocument }) {
  const query = new URLSearchParams({ project, path, ...(workflow === null ? {} : { workflow }) });
  const program = useDocument<Program>(`/data/workflow?${query.toString()}`);
  if (program.kind !== 'loaded') return null;
  const { nodes, edges } = foldGroups(programGraph(program.document));
  const sized = edges.map((edge) => ({ ...edge, label: labelSize(edge.label), text: edge.label }));
  const layout = layOut(
    nodes.map((node) => ({ id: node.id, width: widthOf(node), height: HEIGHT })),
    sized,
  );
  const size = { width: layout.width + 2 * MARGIN, height: layout.height + 2 * MARGIN };
  const labels = layout.routes.flatMap(({ edge, label }) => (label === null ? [] : [{ text: edge.text ?? '', label }]));
  return (
    <div class="card written" tabIndex={0} role="group" aria-label={`Graph of ${line(path)}`}>
      <svg viewBox={`${-MARGIN} ${-MARGIN} ${size.width} ${size.height}`} {...size} aria-hidden="true">
        <defs>
          <marker id="workflow-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
            <path d="M0 .5L7.5 4 0 7.5z" />
          </marker>
        </defs>
        {layout.routes.map((route, index) => (
          <path key={index} class={route.edge.kind} d={pathOf(route)} marker-end="url(#workflow-tip)" />
        ))}
        {labels.map(({ text, label }, index) => (
          <text key={index} class="label" x={label.x} y={label.y + label.height - 3}>
            {short(text)}
          </text>
        ))}
        {nodes.map((node) => (
          <Node key={node.id} node={node} box={layout.boxes.get(node.id)} />
        ))}
      </svg>
      <ul class="unseen">
        {nodes.map((node) => (
          <li key={node.id}>
            {line(node.name)}: {line(subtitle(node))}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Node({ node, box }: { readonly node: GraphNode; readonly box: Box | undefined }) {
  if (box === undefined) return null;
  const { x, y, width, height } = box;
  return (
    <g>
      <rect x={x - width / 2} y={y} width={width} height={height} rx={9} />
      <text x={x} y={y + 20}>
        {short(node.name)}
      </text>
      <text class="small" x={x} y={y + 36}>
        {short(subtitle(node))}
      </text>
    </g>
  );
}

function subtitle({ executor, group }: GraphNode): string {
  return group === null ? executor : `${executor} · ${group}`;
}

function short(text: string): string {
  return line(text, NAME_MAX);
}

function widthOf(node: GraphNode): number {
  return Math.ceil(
    Math.max(90, short(node.name).length * CHARACTER, short(subtitle(node)).length * SMALL_CHARACTER) + 28,
  );
}

function labelSize(label: string | null): { readonly width: number; readonly height: number } | null {
  return label === null ? null : { width: short(label).length * SMALL_CHARACTER, height: LABEL_HEIGHT };
}
