// Lines of an output, each with its number as a link.

import type { RefObject } from 'preact';
import { useRef } from 'preact/hooks';
import { numeral } from '../shown-text.ts';
import type { Piece } from './ansi.ts';
import type { OutputPart, ShownLine } from './output-window.ts';

export interface OutputLinesProps {
  readonly container: RefObject<HTMLDivElement | null>;
  /** Null while it is loaded. */
  readonly part: OutputPart | null;
  /** Text to mark; empty marks nothing. */
  readonly find: string;
  /** The chosen line. */
  readonly line: number | null;
  readonly choose: (line: number) => void;
  readonly earlier: () => void;
  readonly more: () => void;
  readonly atEnd: (isAtEnd: boolean) => void;
}

/** So near to an edge more is read. */
const EDGE = 200;

export function OutputLines({ container, part, find, line, choose, earlier, more, atEnd }: OutputLinesProps) {
  /** The edges that were requested: none is requested again before its bytes arrive. */
  const asked = useRef({ from: -1, to: -1 });
  const onScroll = (): void => {
    const { current } = container;
    if (current === null || part === null) return;
    const below = current.scrollHeight - current.scrollTop - current.clientHeight;
    atEnd(below < EDGE);
    if (current.scrollTop < EDGE && asked.current.from !== part.from) {
      asked.current.from = part.from;
      earlier();
    }
    if (below < EDGE && part.to < part.size && asked.current.to !== part.to) {
      asked.current.to = part.to;
      more();
    }
  };
  return (
    <div ref={container} class="log" tabIndex={0} role="region" aria-label="Output lines" onScroll={onScroll}>
      {part?.lines.map((shown) => (
        <Line key={shown.offset} shown={shown} find={find} isChosen={shown.number === line} choose={choose} />
      ))}
    </div>
  );
}

function Line({
  shown: { number, pieces, cut },
  find,
  isChosen,
  choose,
}: {
  readonly shown: ShownLine;
  readonly find: string;
  readonly isChosen: boolean;
  readonly choose: (line: number) => void;
}) {
  return (
    <div data-line={number} class={isChosen ? 'chosen' : ''}>
      <button type="button" tabIndex={-1} aria-label={`Link to line ${number}`} onClick={() => choose(number)}>
        {number}
      </button>
      <span>
        {pieces.map((piece, index) => (
          <span key={index} class={piece.style}>
            {marked(piece, find)}
          </span>
        ))}
        {cut > 0 && <span class="faint"> … {numeral(cut)} more</span>}
      </span>
    </div>
  );
}

function marked({ text }: Piece, find: string) {
  if (find === '') return text;
  const parts: (string | { readonly hit: string })[] = [];
  const lower = text.toLowerCase();
  const wanted = find.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    parts.push(text.slice(from, at), { hit: text.slice(at, at + wanted.length) });
    from = at + wanted.length;
  }
  parts.push(text.slice(from));
  return parts.map((part, index) =>
    typeof part === 'string' ? (
      part
    ) : (
      <mark key={index} class="hit">
        {part.hit}
      </mark>
    ),
  );
}
