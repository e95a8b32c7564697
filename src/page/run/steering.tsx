// The buttons that steer a run. Each runs the command of its name on the server; what became of it is what the journal says.

import { useState } from 'preact/hooks';
import type { Refusal } from '../../web/protocol.ts';
import { compareAddress } from '../addresses.ts';
import { exported } from '../exported.ts';
import { post } from '../post.ts';
import { session } from '../session.ts';
import { line } from '../shown-text.ts';
import { useRunShown } from './run-shown.ts';

type Action = 'stop' | 'pause' | 'resume' | 'retry';

/** What was asked, and what the server answered. It is shown until the next record. */
interface Asked {
  readonly action: Action;
  readonly seq: number;
  readonly note: string | null;
  readonly refusal: Refusal | null;
}

export function Steering() {
  const { of, state, engine, interrupted, isLive, lastSeq } = useRunShown();
  const [confirms, setConfirms] = useState(false);
  const [asked, setAsked] = useState<Asked | null>(null);
  if (exported !== null) return null;
  const compare = (
    <a class="b s" href={compareAddress(of, null)}>
      Compare…
    </a>
  );
  if (session.value?.readOnly === true || !isLive) return <div class="acts">{compare}</div>;
  const act = (action: Action): void => {
    setConfirms(false);
    setAsked({ action, seq: lastSeq, note: null, refusal: null });
    void post(`/do/${action}`, of).then((result) =>
      setAsked({
        action,
        seq: lastSeq,
        note: result.ok ? result.done.note : null,
        refusal: result.ok ? null : result.refusal,
      }),
    );
  };
  const works = engine !== null && state.phase !== 'ended';
  const canResume = engine === null && (interrupted || state.end === 'paused' || state.end === 'stopped');
  const shown = asked !== null && (asked.refusal !== null || asked.seq === lastSeq) ? asked : null;
  return (
    <div class="acts">
      {shown !== null && <Result asked={shown} />}
      {compare}
      {works && state.end === null && <Button name="Pause" press={() => act('pause')} />}
      {canResume && <Button name="Resume" press={() => act('resume')} class="go" />}
      {engine === null && state.phase === 'ended' && state.end === 'failed' && (
        <Button name="Retry" press={() => act('retry')} class="go" />
      )}
      {works && !confirms && <Button name="Stop" press={() => setConfirms(true)} class="no" />}
      {works && confirms && (
        <>
          <Button name="Stop it" press={() => act('stop')} class="no" focused />
          <Button name="Keep running" press={() => setConfirms(false)} />
        </>
      )}
    </div>
  );
}

function Button({
  name,
  press,
  class: tone = '',
  focused = false,
}: {
  readonly name: string;
  readonly press: () => void;
  readonly class?: string;
  readonly focused?: boolean;
}) {
  return (
    <button type="button" class={`b s ${tone}`} onClick={press} ref={focused ? focusOnce : null}>
      {name}
    </button>
  );
}

function focusOnce(button: HTMLButtonElement | null): void {
  if (document.activeElement === document.body) button?.focus();
}

function Result({ asked: { action, note, refusal } }: { readonly asked: Asked }) {
  if (refusal === null) {
    return (
      <span class="dim" role="status">
        {note === null ? `${action}: sent` : line(note)}
      </span>
    );
  }
  return (
    <span class="refused" role="alert">
      {line(refusal.message)}
      {refusal.cure !== null && <span class="dim"> {line(refusal.cure)}</span>}
    </span>
  );
}
