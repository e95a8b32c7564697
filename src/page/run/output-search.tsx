// The search of a whole output: the server searches, the page shows one match after the other.

import { useEffect, useRef, useState } from 'preact/hooks';
import type { OutputMatch, SearchDocument, StreamName } from '../../web/protocol.ts';
import { useKeys } from '../keys.ts';
import { line, numeral } from '../shown-text.ts';
import type { OutputSource } from './output-source.ts';
import type { Loaded } from './use-document.ts';

const TYPING_MS = 250;

export interface OutputSearchProps {
  readonly source: OutputSource;
  readonly stream: StreamName;
  readonly find: string;
  readonly setFind: (find: string) => void;
  readonly show: (match: OutputMatch) => void;
}

export function OutputSearch({ source, stream, find, setFind, show }: OutputSearchProps) {
  const [found, setFound] = useState<Loaded<SearchDocument> | null>(null);
  const [index, setIndex] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    setFound(null);
    if (find === '') return undefined;
    let isCurrent = true;
    const timer = setTimeout(() => {
      void source.search(stream, find, 0).then((answer) => {
        if (!isCurrent) return;
        setFound(answer);
        setIndex(0);
        const first = answer.kind === 'ready' ? answer.value.matches[0] : undefined;
        if (first !== undefined) show(first);
      });
    }, TYPING_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [source, stream, find]);
  useKeys('Output', [{ key: '/', label: 'search the output', press: () => field.current?.focus() }]);
  const move = (by: number): void => {
    const matches = found?.kind === 'ready' ? found.value.matches : [];
    if (matches.length === 0) return;
    const next = (index + by + matches.length) % matches.length;
    const match = matches[next];
    setIndex(next);
    if (match !== undefined) show(match);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') move(event.shiftKey ? -1 : 1);
    else if (event.key === 'Escape') {
      setFind('');
      field.current?.blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="find" role="search">
      <input
        ref={field}
        type="search"
        aria-label="Search the output"
        placeholder="Search the output…"
        value={find}
        onInput={({ currentTarget }) => setFind(currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <span class="num" role="status">
        {find === '' ? '' : resultText(found, index)}
      </span>
    </div>
  );
}

function resultText(found: Loaded<SearchDocument> | null, index: number): string {
  if (found === null || found.kind === 'loading') return '…';
  if (found.kind === 'refused') return line(found.refusal.message);
  const { matches, more } = found.value;
  return matches.length === 0 ? 'none' : `${numeral(index + 1)} of ${numeral(matches.length)}${more ? '+' : ''}`;
}
