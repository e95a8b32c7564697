// A foreign text in full: a part of it at first, because a prompt can have a megabyte.

import { useState } from 'preact/hooks';
import { numeral, text as shownText, withLinks } from '../shown-text.ts';

const FIRST = 20_000;
const MORE = 200_000;

export function LongText({ text, label }: { readonly text: string; readonly label: string }) {
  const [length, setLength] = useState(FIRST);
  const shown = shownText(text.slice(0, length), Number.POSITIVE_INFINITY);
  return (
    <>
      <pre class="text" tabIndex={0} aria-label={label} dir="auto">
        {withLinks(shown).map((piece, index) =>
          piece.kind === 'text' ? (
            piece.text
          ) : (
            <a key={index} href={piece.text} target="_blank" rel="noopener noreferrer">
              {piece.text}
            </a>
          ),
        )}
      </pre>
      {text.length > length && (
        <button type="button" class="b s" onClick={() => setLength(length + MORE)}>
          Show more: {numeral(text.length - length)} characters are left
        </button>
      )}
    </>
  );
}
