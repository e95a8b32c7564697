// When a step ran, as bars on the time axis; for a group, what ran at each time.

import type { StepState } from '../../kernel/state.ts';
import type { RunRow } from '../../view/run-rows.ts';
import type { Span } from '../../view/spans.ts';
import type { TimeAxis } from '../../view/time-axis.ts';
import { costText, stepCost, stepDuration } from '../../view/usage.ts';
import type { Tone } from '../icons.tsx';
import { duration, line } from '../shown-text.ts';
import type { RunShown } from './run-shown.ts';

interface Bar {
  readonly left: number;
  readonly width: number;
  readonly tone: Tone | 'wait';
}

const AFTER_MAX = 0.72;
const BEFORE_MIN = 0.3;

const percent = (share: number): string => `${Math.round(share * 10_000) / 100}%`;

export function Lane({ row, run, axis, time }: LaneProps) {
  const bars = row.kind === 'section' ? [] : barsOf(row.step, row.counts !== null, run, axis, time);
  const text = row.kind === 'section' ? '' : textOf(row.step, run, time);
  const end = bars.reduce((most, { left, width }) => Math.max(most, left + width), 0);
  const begin = bars[0]?.left ?? 0;
  // Beside the bars, where there is room; otherwise on them.
  const isOnBar = end > AFTER_MAX && begin < BEFORE_MIN;
  const place = isOnBar ? { right: '6px' } : end > AFTER_MAX ? { right: percent(1 - begin) } : { left: percent(end) };
  return (
    <div class="lane" role="gridcell">
      {bars.map(({ left, width, tone }, index) => (
        <i key={index} class={`bar ${tone}`} style={{ left: percent(left), width: percent(width) }} />
      ))}
      {text !== '' && row.kind === 'step' && row.counts === null && (
        <em class={isOnBar ? 'on' : undefined} style={place}>
          {text}
        </em>
      )}
    </div>
  );
}

export interface LaneProps {
  readonly row: RunRow;
  readonly run: RunShown;
  readonly axis: TimeAxis;
  readonly time: number;
}

function barsOf(step: StepState, isGroup: boolean, run: RunShown, axis: TimeAxis, time: number): readonly Bar[] {
  if (isGroup) return groupBars(step, run, axis, time);
  return run.spans.of(step.id, run.seq).map((span) => {
    const left = axis.place(span.from);
    return { left, width: Math.max(0, axis.place(span.to ?? time) - left), tone: toneOf(span, step) };
  });
}

function toneOf({ kind, end, to }: Span, step: StepState): Bar['tone'] {
  if (kind === 'person') return 'you';
  if (kind === 'limit') return 'park';
  if (kind === 'retry') return 'wait';
  if (to === null) return 'run';
  if (end === 'failed') return 'bad';
  return end === 'done' || step.status === 'done' ? (end === 'lost' ? 'skip' : 'ok') : 'skip';
}

const BUCKETS = 96;
/** What is shown where several things happened at one time. */
const STRONGEST: readonly Bar['tone'][] = ['bad', 'you', 'park', 'run', 'ok', 'skip', 'wait'];

function groupBars(step: StepState, { spans, seq }: RunShown, axis: TimeAxis, time: number): readonly Bar[] {
  const tones: (Bar['tone'] | undefined)[] = [];
  for (const leaf of leavesBelow(step)) {
    for (const span of spans.of(leaf.id, seq)) {
      const tone = toneOf(span, leaf);
      // An ended failure marks its end, not all the time before it.
      const last = bucketOf(axis.place(span.to ?? time));
      const first = tone === 'bad' ? last : bucketOf(axis.place(span.from));
      for (let bucket = first; bucket <= last; bucket++) {
        const before = tones[bucket];
        if (before === undefined || STRONGEST.indexOf(tone) < STRONGEST.indexOf(before)) tones[bucket] = tone;
      }
    }
  }
  return [...tones.entries()].flatMap(([bucket, tone]) =>
    tone === undefined ? [] : [{ left: bucket / BUCKETS, width: 0.8 / BUCKETS, tone }],
  );
}

function bucketOf(share: number): number {
  return Math.min(BUCKETS - 1, Math.floor(share * BUCKETS));
}

function* leavesBelow(step: StepState): Generator<StepState> {
  for (const { isInner, steps } of step.children) {
    if (isInner) continue;
    for (const child of steps) {
      if (child.children.some((frame) => !frame.isInner)) yield* leavesBelow(child);
      else yield child;
    }
  }
}

/** Beside the bars: how long it took and what it cost, or why it failed. */
function textOf(step: StepState, run: RunShown, time: number): string {
  const { failure, status } = step;
  if (failure !== null && (status === 'failed' || status === 'pending')) return line(failure.message, 90);
  const took = stepDuration(run.state, step, time);
  if (took === null || status === 'skipped') return '';
  const cost = stepCost(step);
  return [duration(took), cost === null ? '' : costText(cost)].filter((part) => part !== '').join(' · ');
}
