// Text of steps, agents and authors: as text, with its lines, and with links of the web.

import { text, withLinks } from './shown-text.ts';

export function ForeignText({ of }: { readonly of: string }) {
  return (
    <>
      {withLinks(text(of)).map((piece, index) =>
        piece.kind === 'text' ? (
          piece.text
        ) : (
          <a key={index} href={piece.text} target="_blank" rel="noopener noreferrer">
            {piece.text}
          </a>
        ),
      )}
    </>
  );
}
