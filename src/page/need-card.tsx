// One gate, dialog or question that waits for a person, as a card of the fleet: what is asked, and the answer.

import type { FleetNeed } from '../view/fleet.ts';
import { gateKey, inboxAddress, runAddress } from './addresses.ts';
import { Age } from './age.tsx';
import { endOfDialog } from './dialog-end.ts';
import { ForeignText } from './foreign-text.tsx';
import { GateActions } from './gate-actions.tsx';
import { StatusIcon } from './icons.tsx';
import { askingOf, KIND_NAMES, needName } from './need-names.ts';
import { line } from './shown-text.ts';

const PROMPT_MAX = 600;

export function NeedCard({ need }: { readonly need: FleetNeed }) {
  const { project, run, gate, kind, prompt, agent, step, opened_at } = need;
  const of = { project, run };
  return (
    <article class="card ask" aria-label={needName(need)} data-status="open" data-item tabIndex={-1}>
      <header>
        <StatusIcon status="open" />
        <b>{KIND_NAMES[kind]}</b> {agent !== null && 'agent '}
        <span class="m cut">{line(agent ?? gate, 80)}</span>
        <span class="num">
          <Age since={opened_at} />
        </span>
      </header>
      {kind === 'dialog' ? (
        <pre>
          <ForeignText of={endOfDialog(prompt ?? '')} />
        </pre>
      ) : (
        <p>
          <ForeignText of={(prompt ?? `Approve ${gate}?`).slice(0, PROMPT_MAX)} />
        </p>
      )}
      <div class="from">
        <a href={runAddress(of, 'timeline', { step })}>{line(run)}</a>
        {need.interrupted && ' · no engine: takes effect when the run is resumed'}
        {need.approvers !== null && ` · only ${line(need.approvers.join(', '), 80)} may decide`}
      </div>
      <footer>
        <GateActions asking={askingOf(need)} kind={kind} />
        {agent === null ? (
          <a class="b quiet opt" href={inboxAddress(gateKey(of, gate))}>
            Details
          </a>
        ) : (
          <a class="b quiet opt" data-key="t" href={runAddress(of, 'agents', { agent })}>
            Terminal
          </a>
        )}
      </footer>
    </article>
  );
}
