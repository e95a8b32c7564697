// The graph of a run: steps, what they wait for, and what they grew from. A group is one node with its counts and a dot for
// each of its steps; a click opens it.

import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Box, type EdgeSize, layOut, type Layout, type NodeSize } from '../../view/layout.ts';
import {
  type RunGraph,
  type RunGraphEdge,
  type RunGraphNode,
  runStepGraph,
  type StepGraphNode,
} from '../../view/run-graph.ts';
import { countsText, keysAbove, STATUS_ORDER, type StatusCounts } from '../../view/run-rows.ts';
import { CountsBar } from '../counts-bar.tsx';
import { pathOf } from '../edge-path.ts';
import { StatusIcon, statusWord, toneOf } from '../icons.tsx';
import { select } from '../router.ts';
import { age, duration, line, numeral } from '../shown-text.ts';
import { type RunShown, shownTime, useRunShown } from './run-shown.ts';
import { onlyActive } from './view-tabs.tsx';

const NODE_WIDTH = 172;
const NODE_HEIGHT = 58;
const GROUP_WIDTH = 318;
const GROUP_HEIGHT = 90;
const DOTS_PER_ROW = 36;
const DOT_ROW_HEIGHT = 8;
const LABEL_CHARACTER = 6.6;
const LABEL_HEIGHT = 14;
const LABEL_MAX = 24;
const MARGIN = 34;
const ZOOM_MIN = 0.25;
const ZOOM_MAX = 2;
const ZOOM_STEP = 1.25;
/** Smaller would not be legible: then it scrolls. */
const FIT_MIN = 0.55;

export function GraphView() {
  const run = useRunShown();
  const { state, selection } = run;
  const isLimited = onlyActive.value;
  const [opened, setOpened] = useState<ReadonlyMap<string, boolean>>(new Map());
  const [zoom, setZoom] = useState<number | null>(null);
  const container = useRef<HTMLDivElement>(null);
  const graph = runStepGraph(state, { opened, step: selection.step, onlyActive: isLimited });
  const layout = useGraphLayout(graph);
  const fitted = useFit(container, layout);
  const scale = zoom ?? fitted;
  // What a person closed is opened again for a step that is chosen in it.
  useLayoutEffect(() => {
    const above = selection.step === null ? [] : keysAbove(state, selection.step);
    if (above.some((key) => opened.get(key) === false))
      setOpened(new Map([...opened].filter(([key]) => !above.includes(key))));
  }, [selection.step]);
  const shown = useRef<string | null>(null);
  useLayoutEffect(() => {
    if (shown.current === selection.step) return;
    shown.current = selection.step;
    const chosen = container.current?.querySelector('[aria-current="true"]');
    chosen?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  });
  const press = ({ id, group }: StepGraphNode): void => {
    if (group !== null) setOpened(new Map([...opened, [id, !group.isOpen]]));
    select({ step: id, attempt: null, line: null });
  };
  if (graph.nodes.length === 0)
    return <p class="empty">{isLimited ? 'Nothing runs, waits or has failed.' : 'No steps yet.'}</p>;
  const size = { width: layout.width + 2 * MARGIN, height: layout.height + 2 * MARGIN };
  return (
    <div class="graph">
      <div class="graph-scroll" ref={container} tabIndex={0} role="group" aria-label="Graph">
        <div class="graph-size" style={{ width: `${size.width * scale}px`, height: `${size.height * scale}px` }}>
          <div
            class="graph-in"
            style={{ width: `${size.width}px`, height: `${size.height}px`, transform: `scale(${scale})` }}
          >
            <Edges layout={layout} graph={graph} size={size} />
            {graph.nodes.map((node) => {
              const box = layout.boxes.get(node.id);
              if (box === undefined) return null;
              return node.kind === 'rest' ? (
                <Rest key={node.id} node={node} box={box} />
              ) : (
                <StepBox key={node.id} node={node} box={box} run={run} press={press} />
              );
            })}
          </div>
        </div>
      </div>
      <Legend graph={graph} />
      <div class="zoom" role="group" aria-label="Zoom">
        <ZoomButton name="Zoom out" sign="−" press={() => setZoom(Math.max(ZOOM_MIN, scale / ZOOM_STEP))} />
        <ZoomButton name="Fit" sign="fit" press={() => setZoom(null)} />
        <ZoomButton name="Zoom in" sign="+" press={() => setZoom(Math.min(ZOOM_MAX, scale * ZOOM_STEP))} />
      </div>
    </div>
  );
}

function ZoomButton({ name, sign, press }: { readonly name: string; readonly sign: string; press: () => void }) {
  return (
    <button type="button" class="b s" aria-label={name} onClick={press}>
      {sign}
    </button>
  );
}

type DrawnEdge = EdgeSize & { readonly text: string | null };
type GraphLayout = Layout<DrawnEdge>;

/** Computed only if nodes, their sizes or edges change: most records change only what is written in a node. */
function useGraphLayout({ nodes, edges }: RunGraph): GraphLayout {
  const sizes = nodes.map(sizeOf);
  const key = JSON.stringify([sizes, edges]);
  return useMemo(() => layOut(sizes, drawnEdges(edges)), [key]);
}

function sizeOf(node: RunGraphNode): NodeSize {
  const { id } = node;
  if (node.kind === 'rest' || node.group === null) return { id, width: NODE_WIDTH, height: NODE_HEIGHT };
  const rows = Math.ceil(node.group.dots.length / DOTS_PER_ROW);
  return { id, width: GROUP_WIDTH, height: GROUP_HEIGHT + rows * DOT_ROW_HEIGHT };
}

/** Lines between the same two nodes are one, which names all outcomes. */
function drawnEdges(edges: readonly RunGraphEdge[]): readonly DrawnEdge[] {
  const lines = new Map<string, { readonly edge: RunGraphEdge; readonly labels: string[] }>();
  for (const edge of edges) {
    const key = JSON.stringify([edge.from, edge.to]);
    const drawn = lines.get(key) ?? { edge, labels: [] };
    if (edge.label !== null) drawn.labels.push(edge.label);
    lines.set(key, drawn);
  }
  return [...lines.values()].map(({ edge: { from, to, kind }, labels }) => {
    const text = labels.length === 0 ? null : line(labels.join(', '), LABEL_MAX);
    const label = text === null ? null : { width: text.length * LABEL_CHARACTER, height: LABEL_HEIGHT };
    return { from, to, kind, text, label };
  });
}

/** The scale at which the whole graph can be seen, if that is legible. */
function useFit(container: { readonly current: HTMLDivElement | null }, { width, height }: GraphLayout): number {
  const [room, setRoom] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const { current } = container;
    if (current === null) return undefined;
    const measure = (): void => setRoom({ width: current.clientWidth, height: current.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(current);
    measure();
    return () => observer.disconnect();
  }, [container.current]);
  if (room.width === 0) return 1;
  const fit = Math.min(1, room.width / (width + 2 * MARGIN), room.height / (height + 2 * MARGIN));
  return Math.max(FIT_MIN, fit);
}

function Edges({ layout, graph, size }: EdgesProps) {
  const running = new Set(
    graph.nodes.flatMap(({ id, status }) => (status === 'running' || status === 'waiting' ? [id] : [])),
  );
  return (
    <svg class="e" viewBox={`${-MARGIN} ${-MARGIN} ${size.width} ${size.height}`} {...size} aria-hidden="true">
      <defs>
        <marker id="graph-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
          <path class="tip" d="M0 .5L7.5 4 0 7.5z" />
        </marker>
      </defs>
      {layout.routes.map((route, index) => {
        const { points, edge } = route;
        const isBack = (points.at(-1)?.y ?? 0) < (points[0]?.y ?? 0);
        const tone = isBack ? 'back' : running.has(edge.to) ? 'hot' : edge.kind;
        return <path key={index} class={tone} d={pathOf(route)} marker-end="url(#graph-tip)" />;
      })}
      {layout.routes.flatMap(({ edge, label }, index) =>
        label === null ? (
          []
        ) : (
          <text key={index} x={label.x} y={label.y + label.height - 3}>
            {edge.text}
          </text>
        ),
      )}
    </svg>
  );
}

interface EdgesProps {
  readonly layout: GraphLayout;
  readonly graph: RunGraph;
  readonly size: { readonly width: number; readonly height: number };
}

interface StepBoxProps {
  readonly node: StepGraphNode;
  readonly box: Box;
  readonly run: RunShown;
  readonly press: (node: StepGraphNode) => void;
}

function StepBox({ node, box, run, press }: StepBoxProps) {
  const { id, step, status, name, group } = node;
  const { selection } = run;
  const isChosen = selection.step === id;
  const { executor } = step.definition;
  const says = group === null ? statusWord(status) : countsText(group.counts);
  return (
    <div
      data-step={id}
      data-status={status}
      {...(group === null ? {} : { 'data-group': id })}
      class={`node ${toneOf(status)} ${group === null ? '' : 'group'} ${isChosen ? 'sel' : ''}`}
      style={placeOf(box)}
    >
      <button
        type="button"
        class="cover"
        data-item
        aria-current={isChosen ? 'true' : undefined}
        aria-expanded={group?.isOpen}
        aria-label={`${line(id)} ${line(executor)} ${says}`}
        onClick={() => press(node)}
        onKeyDown={(event) => {
          const isMove = event.key === 'ArrowRight' || event.key === 'ArrowLeft';
          if (!isMove || group === null || group.isOpen === (event.key === 'ArrowRight')) return;
          event.preventDefault();
          press(node);
        }}
      />
      <div class="t">
        <StatusIcon status={status} label="" />
        <span class="cut" dir="auto">
          {line(name, 60)}
        </span>
        {group !== null && <span class="x">× {numeral(sumOf(group.counts))}</span>}
        <span class="num">{timeText(node, run)}</span>
      </div>
      <small class="cut">
        {line(executor, 30)}
        {step.agent !== null && ` · ${line(step.agent, 30)}`}
        {step.attempt > 1 && ` · attempt ${step.attempt}`}
      </small>
      {group !== null && <GroupFacts group={group} />}
    </div>
  );
}

function GroupFacts({ group: { counts, dots } }: { readonly group: NonNullable<StepGraphNode['group']> }) {
  const urgent = STATUS_ORDER.filter((status) => status !== 'done' && status !== 'pending' && status !== 'skipped');
  const parts = urgent.flatMap((status) => ((counts[status] ?? 0) > 0 ? [status] : []));
  return (
    <>
      <div class="mini" aria-hidden="true">
        {dots.map((status, index) => (
          <i key={index} class={toneOf(status)} />
        ))}
      </div>
      <CountsBar counts={counts} />
      <small>
        {parts.length === 0 && countsText(counts)}
        {parts.map((status, index) => (
          <span key={status}>
            {index > 0 && ' · '}
            <b class={`c-${toneOf(status)}`}>
              {numeral(counts[status] ?? 0)} {statusWord(status)}
            </b>
          </span>
        ))}
      </small>
    </>
  );
}

function Rest({ node: { status, count }, box }: { readonly node: Extract<RunGraphNode, { kind: 'rest' }>; box: Box }) {
  return (
    <div class={`node ${toneOf(status)}`} data-section={status} style={placeOf(box)}>
      <div class="t">
        <StatusIcon status={status} label="" />
        {numeral(count)} {statusWord(status)}
      </div>
      <small>steps that are not shown one by one</small>
    </div>
  );
}

/** Of boxes the layout knows the middle. */
function placeOf({ x, y, width, height }: Box) {
  return {
    left: `${x - width / 2 + MARGIN}px`,
    top: `${y + MARGIN}px`,
    width: `${width}px`,
    height: `${height}px`,
  };
}

function timeText({ id, step }: StepGraphNode, run: RunShown): string {
  const attempts = run.spans.of(id, run.seq).filter(({ kind }) => kind === 'attempt');
  const span = attempts.at(-1);
  if (span === undefined || step.status === 'pending') return '';
  return span.to === null ? age(shownTime(run) - span.from) : duration(span.to - span.from);
}

function sumOf(counts: StatusCounts): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

const LEGEND = ['done', 'running', 'waiting', 'failed', 'pending'];

function Legend({ graph: { nodes } }: { readonly graph: RunGraph }) {
  const others = new Set(nodes.map(({ status }) => status).filter((status) => !LEGEND.includes(status)));
  return (
    <div class="legend" aria-hidden="true">
      {[...LEGEND, ...others].map((status) => (
        <span key={status}>
          <StatusIcon status={status} label="" />
          {statusWord(status)}
        </span>
      ))}
    </div>
  );
}
