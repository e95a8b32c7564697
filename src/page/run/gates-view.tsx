// The gates of a run: those that wait for a person, then those that were decided, the latest first. And, above the other
// views, those that wait.

import { type GateView, openGates, statusView } from '../../view/status.ts';
import { runAddress } from '../addresses.ts';
import { DecidedGateCard, OpenGateCard } from './gate-card.tsx';
import { useRunShown } from './run-shown.ts';

/** More are on the page of gates. */
const STRIP_MAX = 2;

export function GatesView() {
  const { state } = useRunShown();
  const { gates } = statusView(state);
  const open = gates.filter(({ status }) => status === 'open');
  const decided = gates.filter(({ status }) => status !== 'open').toReversed();
  return (
    <div class="scroll gates">
      {gates.length === 0 && <p class="empty">This run has not asked a person for anything.</p>}
      {open.length > 0 && (
        <section aria-label="Needs you">
          {open.map((gate) => (
            <OpenGateCard key={keyOf(gate)} gate={gate} brief={false} />
          ))}
        </section>
      )}
      {decided.length > 0 && (
        <section aria-label="Decided">
          <h2>Decided</h2>
          {decided.map((gate) => (
            <DecidedGateCard key={keyOf(gate)} gate={gate} />
          ))}
        </section>
      )}
    </div>
  );
}

export function OpenGates() {
  const { of, state, selection, isLive } = useRunShown();
  const open = openGates(state);
  if (open.length === 0 || !isLive) return null;
  return (
    <section class="strip" aria-label="Needs you">
      {open.slice(0, STRIP_MAX).map((gate) => (
        <OpenGateCard key={keyOf(gate)} gate={gate} brief />
      ))}
      {open.length > STRIP_MAX && (
        <a href={runAddress(of, 'gates', selection)}>{open.length - STRIP_MAX} more wait for you</a>
      )}
    </section>
  );
}

/** A gate that is opened again is another article. */
function keyOf({ id, opened_at: openedAt }: GateView): string {
  return `${id} ${openedAt}`;
}
