// A gate of the run as an article: what is asked, what follows from each answer, and the buttons; or who decided.

import { useRef } from 'preact/hooks';
import { gateConsequences } from '../../view/consequences.ts';
import type { GateView } from '../../view/status.ts';
import { inboxAddress, gateKey, runAddress } from '../addresses.ts';
import { exported } from '../exported.ts';
import { endOfDialog } from '../dialog-end.ts';
import { GateActions } from '../gate-actions.tsx';
import { Consequences } from '../gate-consequences.tsx';
import { StatusIcon } from '../icons.tsx';
import { age, line, moment, text } from '../shown-text.ts';
import { shownTime, useRunShown } from './run-shown.ts';

export function OpenGateCard({ gate, brief }: { readonly gate: GateView; readonly brief: boolean }) {
  const run = useRunShown();
  const { of, state, selection, isLive } = run;
  const notes = useRef<HTMLTextAreaElement>(null);
  const kind = kindOf(gate);
  const since = gate.opened_at === null ? null : shownTime(run) - Date.parse(gate.opened_at);
  const consequences = gateConsequences(state, gate.id);
  return (
    <article
      class="card ask"
      tabIndex={0}
      data-item
      data-gate={gate.id}
      data-status="open"
      aria-label={nameOf(gate, of.run)}
    >
      <header>
        <StatusIcon status="waiting" label="" />
        <b>{KIND_NAMES[kind]}</b>
        <span class="m">{line(gate.id)}</span>
        {gate.step !== null && gate.step !== gate.id && (
          <a class="m" href={runAddress(of, 'timeline', { ...selection, step: gate.step })}>
            {line(gate.step)}
          </a>
        )}
        {since !== null && <span class="num">{age(since)}</span>}
      </header>
      {kind === 'dialog' && brief ? (
        <pre>{text(endOfDialog(gate.prompt ?? ''))}</pre>
      ) : (
        <p class="prompt" dir="auto">
          {text(gate.prompt ?? 'No question was given.', brief ? 400 : undefined)}
        </p>
      )}
      {gate.approvers !== null && <div class="from">decided by {line(gate.approvers.join(', '))}</div>}
      {consequences !== null && <Consequences of={of} kind={kind} consequences={consequences} brief={brief} />}
      {isLive ? (
        <footer>
          {!brief && kind !== 'question' && exported === null && (
            <textarea ref={notes} class="in" aria-label="Note" placeholder="A note for the run, if you like…" />
          )}
          <GateActions
            asking={{ ...of, gate: gate.id, openedAt: gate.opened_at }}
            kind={kind}
            {...(brief ? {} : { notes })}
          />
          {brief && exported === null && (
            <a class="b quiet opt" href={inboxAddress(gateKey(of, gate.id))}>
              Details
            </a>
          )}
        </footer>
      ) : (
        <footer class="dim">open at this record</footer>
      )}
    </article>
  );
}

export function DecidedGateCard({ gate }: { readonly gate: GateView }) {
  const { of, state, selection } = useRunShown();
  const verdict = state.gates.get(gate.id)?.verdict ?? null;
  const status = verdict?.answer === null || verdict === null ? gate.status : 'answered';
  const said = verdict?.answer ?? gate.notes;
  return (
    <article
      class="card decided"
      tabIndex={0}
      data-item
      data-gate={gate.id}
      data-status={status}
      aria-label={nameOf(gate, of.run)}
    >
      <header>
        <StatusIcon status={status} label="" />
        <b>{status}</b>
        <span class="m">{line(gate.id)}</span>
        <span>
          by {line(gate.decided_by ?? 'an unknown person')}
          {verdict?.via !== undefined && <span class="dim"> · {line(verdict.via, 40)}</span>}
        </span>
        {gate.step !== null && (
          <a class="m" href={runAddress(of, 'timeline', { ...selection, step: gate.step })}>
            {line(gate.step)}
          </a>
        )}
        {gate.opened_at !== null && <span class="num">asked {moment(Date.parse(gate.opened_at), Date.now())}</span>}
      </header>
      {gate.prompt !== null && <p dir="auto">{text(gate.prompt, 2000)}</p>}
      {said !== null && said !== '' && <blockquote dir="auto">{text(said, 4000)}</blockquote>}
    </article>
  );
}

const KIND_NAMES = { gate: 'Gate', dialog: 'Dialog', question: 'Question' };

function kindOf({ kind }: GateView): keyof typeof KIND_NAMES {
  return kind === 'approval' ? 'gate' : kind;
}

function nameOf(gate: GateView, run: string): string {
  return `${KIND_NAMES[kindOf(gate)]} ${line(gate.id)} of ${line(run)}`;
}

/** A gate that is opened again is another article. */
export function gateCardKey({ id, opened_at: openedAt }: GateView): string {
  return `${id} ${openedAt}`;
}
