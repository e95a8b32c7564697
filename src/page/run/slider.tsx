// The slider over the records of a run. At record n the page shows the fold of n records.

import { useRef } from 'preact/hooks';
import { useKeys } from '../keys.ts';
import { select } from '../router.ts';
import type { PageRecord } from '../../web/protocol.ts';
import { moment, numeral } from '../shown-text.ts';
import { useRunShown } from './run-shown.ts';
import { useFold } from './use-fold.ts';

export function Slider() {
  const { records, seq, lastSeq, isLive } = useRunShown();
  const marks = useFold(records, () => new Marks());
  const track = useRef<HTMLDivElement>(null);
  const show = (wanted: number): void => {
    const record = Math.min(lastSeq, Math.max(1, Math.round(wanted)));
    select({ at: record === lastSeq ? null : record });
  };
  useKeys('Record', [
    { key: '[', label: 'one record back', press: () => show(seq - 1) },
    { key: ']', label: 'one record on', press: () => show(seq + 1) },
  ]);
  const drag = (event: PointerEvent): void => {
    const area = track.current?.getBoundingClientRect();
    if (area !== undefined && event.buttons === 1) show(1 + ((event.clientX - area.left) / area.width) * (lastSeq - 1));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const wanted = {
      ArrowLeft: seq - 1,
      ArrowDown: seq - 1,
      ArrowRight: seq + 1,
      ArrowUp: seq + 1,
      PageUp: seq - lastSeq / 10,
      PageDown: seq + lastSeq / 10,
      Home: 1,
      End: lastSeq,
    }[event.key];
    if (wanted === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    show(wanted);
  };
  const at = records[seq - 1]?.at ?? 0;
  const place = (record: number): string => `${lastSeq < 2 ? 100 : ((record - 1) / (lastSeq - 1)) * 100}%`;
  const text = `record ${numeral(seq)}${isLive ? '' : ` of ${numeral(lastSeq)}`} · ${clock(at)}`;
  return (
    <div class="scrub">
      <div
        ref={track}
        class="track"
        role="slider"
        tabIndex={0}
        aria-label="Record"
        aria-valuemin={1}
        aria-valuemax={lastSeq}
        aria-valuenow={seq}
        aria-valuetext={text}
        onKeyDown={onKeyDown}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          drag(event);
        }}
        onPointerMove={drag}
      >
        {marks.shown(lastSeq).map(({ seq: marked, tone }) => (
          <i key={marked} class={tone} style={{ left: place(marked) }} />
        ))}
        <b class={isLive ? '' : 'past'} style={{ left: place(seq) }} />
      </div>
      <span class="num where">{text}</span>
      {!isLive && (
        <button type="button" class="b s" onClick={() => select({ at: null })}>
          Live ▸▸
        </button>
      )}
    </div>
  );
}

function clock(at: number): string {
  const day = moment(at, Date.now());
  return day.includes(' ') ? day : new Date(at).toLocaleTimeString('en-GB');
}

type Tone = 'bad' | 'you' | 'step';

/** Records in which a step failed, a gate was opened or a step started. */
class Marks {
  readonly #found: { readonly seq: number; readonly tone: Tone }[] = [];

  note({ seq, decisions }: PageRecord): void {
    let tone: Tone | null = null;
    for (const { kind } of decisions) {
      if (kind === 'step-failed' || kind === 'step-failed-once') tone = 'bad';
      else if (kind === 'gate-asked' && tone !== 'bad') tone = 'you';
      else if (kind === 'step-started') tone ??= 'step';
    }
    if (tone !== null) this.#found.push({ seq, tone });
  }

  /** At most one for each of MARKS_MAX places, the most important. */
  shown(lastSeq: number): readonly { readonly seq: number; readonly tone: Tone }[] {
    const places = new Map<number, { readonly seq: number; readonly tone: Tone }>();
    for (const mark of this.#found) {
      const place = Math.floor((mark.seq / lastSeq) * MARKS_MAX);
      const before = places.get(place);
      if (before === undefined || RANKS.indexOf(mark.tone) < RANKS.indexOf(before.tone)) places.set(place, mark);
    }
    return [...places.values()];
  }
}

const MARKS_MAX = 90;
const RANKS: readonly Tone[] = ['bad', 'you', 'step'];
