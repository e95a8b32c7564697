// What happened, in order, in sentences: as `meow trace` prints it.

import { useLayoutEffect, useRef } from 'preact/hooks';
import { Timeline, type TimelineLine } from '../../view/timeline.ts';
import type { PageRecord } from '../../web/protocol.ts';
import { runAddress } from '../addresses.ts';
import { line, moment } from '../shown-text.ts';
import { useRunShown } from './run-shown.ts';
import { useFold } from './use-fold.ts';
import { useWindow } from './use-window.ts';

const ROW_HEIGHT = 24;

class Story {
  readonly #timeline = new Timeline();
  readonly lines: (TimelineLine & { readonly seq: number })[] = [];

  note(record: PageRecord): void {
    for (const told of this.#timeline.lines(record)) this.lines.push({ ...told, seq: record.seq });
  }

  /** Number of lines up to this record. */
  until(seq: number): number {
    let [low, high] = [0, this.lines.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.lines[middle]?.seq ?? 0) <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export function StoryView() {
  const { of, records, seq, selection } = useRunShown();
  const story = useFold(records, () => new Story());
  const count = story.until(seq);
  const { first, end, container } = useWindow(count, ROW_HEIGHT, 0);
  // It follows the run as long as its end is shown.
  const follows = useRef(true);
  useLayoutEffect(() => {
    const { current } = container;
    if (current !== null && follows.current) current.scrollTop = current.scrollHeight;
  }, [count]);
  const onScroll = (): void => {
    const { current } = container;
    if (current !== null)
      follows.current = current.scrollTop + current.clientHeight >= current.scrollHeight - 2 * ROW_HEIGHT;
  };
  const now = Date.now();
  return (
    <div class="scroll story" ref={container} tabIndex={0} role="region" aria-label="Story" onScroll={onScroll}>
      <ol style={{ height: `${count * ROW_HEIGHT}px` }}>
        {story.lines.slice(first, end).map((told, offset) => (
          <li key={first + offset} class={told.tone} style={{ top: `${(first + offset) * ROW_HEIGHT}px` }}>
            <time class="num faint">{timeOf(told.at, now)}</time>
            {told.step !== null && (
              <a class="m" href={runAddress(of, 'story', { ...selection, step: told.step })}>
                {line(told.step, 80)}
              </a>
            )}
            <span title={line(told.text, 2000)}>{line(told.text)}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}

function timeOf(at: number, now: number): string {
  const day = moment(at, now);
  return day.includes(' ') ? day : new Date(at).toLocaleTimeString('en-GB');
}
