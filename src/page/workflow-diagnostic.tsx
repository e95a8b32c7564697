// One mistake in a workflow, with its place.

import type { DiagnosticDocument } from '../web/protocol.ts';
import { line } from './shown-text.ts';

/** With `LINE:COLUMN`, as editors and `meow validate` write it. */
export function Diagnostic({ of }: { readonly of: DiagnosticDocument }) {
  const { severity, file, line: at, column, message, hint } = of;
  const place = at === null ? file : `${file}:${at}:${column ?? 1}`;
  return (
    <li class={severity === 'error' ? 'bad-text' : 'dim'}>
      <span class="m">{line(place)}</span> {line(message)}
      {hint !== null && <div class="dim">{line(hint)}</div>}
    </li>
  );
}
