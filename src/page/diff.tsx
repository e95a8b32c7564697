// A difference of files, as git prints it, file by file.

import { line, text as shownText } from './shown-text.ts';

const LINES_MAX = 5000;

export function Diff({ text }: { readonly text: string }) {
  return (
    <>
      {filesIn(text).map(({ name, lines }, index) => (
        <div key={index} class="card diff">
          <div class="f">
            <span>{line(name)}</span>
            <span class="num">
              <span class="plus">+{count(lines, '+')}</span> <span class="minus">−{count(lines, '-')}</span>
            </span>
          </div>
          <pre tabIndex={0} aria-label={line(name)}>
            {lines.slice(0, LINES_MAX).map((each, place) => (
              <span key={place} class={classOf(each)}>
                {shownText(each, 2000)}
              </span>
            ))}
            {lines.length > LINES_MAX && <span class="hunk">… {lines.length - LINES_MAX} more lines</span>}
          </pre>
        </div>
      ))}
    </>
  );
}

interface FileDiff {
  readonly name: string;
  readonly lines: readonly string[];
}

function filesIn(text: string): readonly FileDiff[] {
  return text
    .split(/^(?=diff --git )/m)
    .filter((part) => part.trim() !== '')
    .map((part) => {
      const all = part.split('\n');
      const begin = all.findIndex((each) => each.startsWith('@@'));
      const named =
        all.find((each) => each.startsWith('+++ ') && !each.endsWith('/dev/null')) ??
        all.find((each) => each.startsWith('--- '));
      const name = named?.replace(/^(?:\+\+\+|---) (?:[ab]\/)?/, '') ?? all[0]?.replace(/^diff --git /, '') ?? '';
      return { name, lines: begin < 0 ? all.slice(1) : all.slice(begin) };
    });
}

function classOf(each: string): string {
  if (each.startsWith('+')) return 'add';
  if (each.startsWith('-')) return 'del';
  return each.startsWith('@@') ? 'hunk' : '';
}

function count(lines: readonly string[], sign: string): number {
  return lines.filter((each) => each.startsWith(sign)).length;
}
