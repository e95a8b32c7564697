// The buttons of an open gate, dialog or question, and what became of the decision. For the article of the gate: its keys
// press the buttons that have `data-key`.

import type { RefObject } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { type Answer, type Asking, decide, ownDecision, undo } from './decisions.ts';
import { exported } from './exported.ts';
import { session } from './session.ts';
import { line } from './shown-text.ts';

export type AskingKind = 'gate' | 'dialog' | 'question';

/** `notes`: the field for a note, if there is one. */
export function GateActions({
  asking,
  kind,
  notes,
}: {
  readonly asking: Asking;
  readonly kind: AskingKind;
  readonly notes?: RefObject<HTMLTextAreaElement | null>;
}) {
  const own = ownDecision(asking);
  if (exported !== null) return <span class="dim">not decided when this file was saved</span>;
  if (session.value?.readOnly === true)
    return <span class="dim">read-only: decide with meow approve or meow reject</span>;
  if (own?.kind === 'undoable') {
    return (
      <>
        <span class="dim" role="status">
          {SENDS[wordOf(kind, own.answer)]} in 3 s
        </span>
        <button type="button" class="b" data-key="u" onClick={() => undo(asking)}>
          Undo
        </button>
      </>
    );
  }
  if (own?.kind === 'sent') {
    return (
      <span class="dim" role="status">
        sent{own.note === null ? '' : `: ${line(own.note)}`}
      </span>
    );
  }
  const send = (answer: Answer): void => decide(asking, { notes: notes?.current?.value || null, ...answer });
  return (
    <>
      {own !== null && (
        <p class="refused" role="alert">
          {line(own.refusal.message)}
          {own.refusal.cure !== null && <span class="dim"> {line(own.refusal.cure)}</span>}
        </p>
      )}
      {kind === 'question' ? <AnswerField send={send} /> : <Buttons kind={kind} send={send} />}
    </>
  );
}

function Buttons({ kind, send }: { readonly kind: AskingKind; readonly send: (answer: Answer) => void }) {
  const [yes, no] = kind === 'dialog' ? ['Allow', 'Deny'] : ['Approve', 'Reject'];
  return (
    <>
      <button type="button" class="b go" data-key="a" onClick={() => send({ approved: true })}>
        {yes} <kbd aria-hidden="true">a</kbd>
      </button>
      <button type="button" class="b no" data-key="x" onClick={() => send({ approved: false })}>
        {no} <kbd aria-hidden="true">x</kbd>
      </button>
    </>
  );
}

function AnswerField({ send }: { readonly send: (answer: Answer) => void }) {
  const field = useRef<HTMLInputElement>(null);
  const [isEmpty, setEmpty] = useState(false);
  const submit = (event: Event): void => {
    event.preventDefault();
    const answer = field.current?.value ?? '';
    setEmpty(answer.trim() === '');
    if (answer.trim() !== '') send({ approved: true, answer });
  };
  return (
    <form class="answer" onSubmit={submit}>
      <input ref={field} class="in" data-key="a" aria-label="Answer" placeholder="Answer…" aria-invalid={isEmpty} />
      <button type="submit" class="b">
        Send
      </button>
    </form>
  );
}

function wordOf(kind: AskingKind, { approved }: Answer): keyof typeof SENDS {
  if (kind === 'question') return 'answer';
  if (kind === 'dialog') return approved ? 'allow' : 'deny';
  return approved ? 'approve' : 'reject';
}

const SENDS = {
  answer: 'Your answer is sent',
  allow: 'Allowing: sent',
  deny: 'Denying: sent',
  approve: 'Approving: sent',
  reject: 'Rejecting: sent',
};
