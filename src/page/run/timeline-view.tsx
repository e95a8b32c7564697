// The timeline: the steps as a tree, and beside each when it ran. Only the rows that can be seen are in the document.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { countsText, keysAbove, type RunRow, runRows, sectionKey, type StatusCounts } from '../../view/run-rows.ts';
import { timeAxis, type TimeAxis } from '../../view/time-axis.ts';
import { StatusIcon, statusWord } from '../icons.tsx';
import { useKeys } from '../keys.ts';
import { select } from '../router.ts';
import { duration, line, moment, numeral } from '../shown-text.ts';
import { Lane } from './lane.tsx';
import { type RunShown, shownTime, useRunShown } from './run-shown.ts';
import { useWindow } from './use-window.ts';
import { onlyActive } from './view-tabs.tsx';

const ROW_HEIGHT = 30;
const HEAD_HEIGHT = 30;

export function TimelineView() {
  const run = useRunShown();
  const isLimited = onlyActive.value;
  const { state, selection } = run;
  const [opened, setOpened] = useState<ReadonlyMap<string, boolean>>(new Map());
  const time = shownTime(run);
  const rows = runRows(state, { opened, step: selection.step, onlyActive: isLimited });
  const axis = axisOf(run, time);
  const { first, end, container, show } = useWindow(rows.length, ROW_HEIGHT, HEAD_HEIGHT);
  const grid = useRef<HTMLDivElement>(null);
  const chosen = rows.findIndex((row) => row.kind === 'step' && row.step.id === selection.step);
  const open = (row: RunRow, isOpen: boolean): void => {
    if (row.kind === 'section' || row.counts !== null) setOpened(new Map([...opened, [keyOf(row), isOpen]]));
  };
  const scrolled = useRef<string | null>(null);
  useLayoutEffect(() => {
    if (selection.step === scrolled.current) return;
    if (selection.step === null) scrolled.current = null;
    if (chosen < 0) return;
    scrolled.current = selection.step;
    show(chosen);
  });
  // A group that a person closed opens again if a step in it is selected.
  useLayoutEffect(() => {
    const above = selection.step === null ? [] : keysAbove(state, selection.step);
    if (above.some((key) => opened.get(key) === false))
      setOpened(new Map([...opened].filter(([key]) => !above.includes(key))));
  }, [selection.step]);
  const focus = (index: number): boolean => {
    if (index < 0 || index >= rows.length) return false;
    show(index);
    // The row is drawn after the container has scrolled.
    requestAnimationFrame(() => rowElement(grid.current, index)?.focus());
    return true;
  };
  const focused = (): number =>
    Number(document.activeElement?.closest('[aria-rowindex]')?.getAttribute('aria-rowindex') ?? 0) - 1;
  const move = (by: number): boolean => {
    if (document.activeElement?.closest('article') !== null && document.activeElement?.closest('article') !== undefined)
      return false;
    return focus(focused() >= 0 ? focused() + by : Math.max(0, chosen));
  };
  useKeys('Timeline', [
    { key: 'j', label: 'next row', press: () => move(1) },
    { key: 'k', label: 'previous row', press: () => move(-1) },
  ]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const row = rows[focused()];
    if (row === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    if (pressInRow(event.key, row, { rows, open, focus, index: focused(), page: end - first })) event.preventDefault();
  };
  return (
    <div class="gantt" ref={container}>
      <div class="gantt-in">
        <AxisHead axis={axis} rows={rows.length} steps={state.steps.size} live={run.isLive} />
        {axis.gaps.map(({ start, width, from, to }) => (
          <div key={from} class="gap" style={{ left: laneOffset(start), width: laneWidth(width) }}>
            <span>{duration(to - from)} idle</span>
          </div>
        ))}
        {state.phase !== 'ended' && <div class="now" style={{ left: laneOffset(1) }} />}
        <div
          ref={grid}
          role="treegrid"
          aria-label="Steps"
          aria-rowcount={rows.length}
          aria-colcount={2}
          class="rows"
          style={{ height: `${rows.length * ROW_HEIGHT}px` }}
          onKeyDown={onKeyDown}
        >
          {rows.slice(first, end).map((row, offset) => {
            const index = first + offset;
            const isChosen = index === chosen;
            return (
              <div
                key={keyOf(row)}
                role="row"
                data-item
                class="grow2"
                {...rowFacts(row)}
                aria-rowindex={index + 1}
                aria-level={row.depth + 1}
                aria-selected={isChosen ? true : undefined}
                tabIndex={isChosen || (chosen < 0 && index === 0) ? 0 : -1}
                style={{ top: `${index * ROW_HEIGHT}px` }}
                onClick={() => press(row, open)}
              >
                <Name row={row} />
                <Lane row={row} run={run} axis={axis} time={time} />
              </div>
            );
          })}
        </div>
        {rows.length === 0 && <p class="empty">{isLimited ? 'Nothing runs, waits or has failed.' : 'No steps yet.'}</p>}
      </div>
    </div>
  );
}

function axisOf(run: RunShown, time: number): TimeAxis {
  const { state, spans, seq } = run;
  const from = state.startedAt ?? time;
  return timeAxis(spans.busy(seq), from, time, -new Date(time).getTimezoneOffset() * 60_000);
}

function AxisHead({ axis, rows, steps, live }: AxisHeadProps) {
  return (
    <div class="axis">
      <div>
        {numeral(steps)} {steps === 1 ? 'step' : 'steps'}
        {rows !== steps && ` · ${numeral(rows)} ${rows === 1 ? 'row' : 'rows'}`}
      </div>
      <div class="ticks" aria-hidden="true">
        {axis.ticks.map(({ at, place }) => (
          <span key={at} style={{ left: `${place * 100}%` }}>
            {clockText(at, axis)}
          </span>
        ))}
        <span class={live ? 'end live' : 'end'}>{clockText(axis.to, axis)}</span>
      </div>
    </div>
  );
}

interface AxisHeadProps {
  readonly axis: TimeAxis;
  readonly rows: number;
  readonly steps: number;
  readonly live: boolean;
}

/** With seconds if the run is short. */
function clockText(at: number, { from, to }: TimeAxis): string {
  if (to - from > 10 * 60_000) return moment(at, to);
  return new Date(at).toLocaleTimeString('en-GB');
}

/** In the part of the row that has the bars. */
function laneOffset(share: number): string {
  return `calc(var(--names) + (100% - var(--names)) * ${share})`;
}

function laneWidth(share: number): string {
  return `calc((100% - var(--names)) * ${share})`;
}

function keyOf(row: RunRow): string {
  return row.kind === 'step' ? row.step.id : sectionKey(row.group, row.section);
}

function rowFacts(row: RunRow) {
  if (row.kind === 'section') {
    return {
      'data-section': row.section,
      'aria-expanded': row.isOpen,
      'aria-label': `${numeral(row.steps.length)} ${row.section} in ${line(row.group)}`,
    };
  }
  const { step, status, counts, isOpen } = row;
  const isGroup = counts !== null;
  const name = `${line(step.id)} ${line(step.definition.executor)}`;
  return {
    'data-step': step.id,
    'data-status': status,
    ...(isGroup ? { 'data-group': step.id, 'aria-expanded': isOpen } : {}),
    'aria-label': isGroup ? `${name} ${countsText(counts)}` : `${name} ${statusWord(status)}`,
  };
}

function Name({ row }: { readonly row: RunRow }) {
  if (row.kind === 'section') {
    return (
      <div class="tn" role="gridcell" style={{ '--d': row.depth }}>
        <span class="tw">{row.isOpen ? '▾' : '▸'}</span>
        <StatusIcon status={row.section === 'under way' ? 'running' : row.section} label="" />
        <span class="nm">
          {numeral(row.steps.length)} {row.section}
        </span>
      </div>
    );
  }
  const { step, status, name, depth, counts, isOpen } = row;
  const { executor } = step.definition;
  return (
    <div class="tn" role="gridcell" style={{ '--d': depth }}>
      <span class="tw">{counts === null ? '' : isOpen ? '▾' : '▸'}</span>
      <StatusIcon status={status} />
      <span class="nm" dir="auto">
        {line(name)}
        {counts !== null && <span class="x"> × {numeral(sumOf(counts))}</span>}
      </span>
      <span class="ex">
        {line(executor)}
        {step.agent !== null && ` · ${line(step.agent)}`}
      </span>
    </div>
  );
}

function sumOf(counts: StatusCounts): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

function press(row: RunRow, open: (row: RunRow, isOpen: boolean) => void): void {
  open(row, !row.isOpen);
  if (row.kind === 'step') select({ step: row.step.id, attempt: null, line: null });
}

interface Around {
  readonly rows: readonly RunRow[];
  readonly index: number;
  /** Rows in the window. */
  readonly page: number;
  readonly open: (row: RunRow, isOpen: boolean) => void;
  readonly focus: (index: number) => boolean;
}

/** As in a treegrid whose rows have the focus. False if the key means nothing here. */
function pressInRow(key: string, row: RunRow, { rows, index, page, open, focus }: Around): boolean {
  const canOpen = row.kind === 'section' || row.counts !== null;
  switch (key) {
    case 'Enter':
    case ' ':
      press(row, open);
      return true;
    case 'ArrowRight':
      if (canOpen && !row.isOpen) open(row, true);
      else if (canOpen) focus(index + 1);
      return true;
    case 'ArrowLeft':
      if (canOpen && row.isOpen) open(row, false);
      else focus(rows.findLastIndex((other, place) => place < index && other.depth < row.depth));
      return true;
    case 'ArrowDown':
      return focus(index + 1);
    case 'ArrowUp':
      return focus(index - 1);
    case 'Home':
      return focus(0);
    case 'End':
      return focus(rows.length - 1);
    case 'PageDown':
      return focus(Math.min(rows.length - 1, index + page));
    case 'PageUp':
      return focus(Math.max(0, index - page));
    default:
      return false;
  }
}

function rowElement(grid: HTMLElement | null, index: number): HTMLElement | null {
  return grid?.querySelector<HTMLElement>(`[aria-rowindex="${index + 1}"]`) ?? null;
}
