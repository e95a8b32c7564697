// The gates of a run: those that wait for a person, then those that were decided, the latest first.

import { gatesOf } from '../../view/status.ts';
import { DecidedGateCard, gateCardKey, OpenGateCard } from './gate-card.tsx';
import { useRunShown } from './run-shown.ts';

export function GatesView() {
  const { state } = useRunShown();
  const gates = gatesOf(state);
  const open = gates.filter(({ status }) => status === 'open');
  const decided = gates.filter(({ status }) => status !== 'open').toReversed();
  return (
    <div class="scroll gates">
      {gates.length === 0 && <p class="empty">This run has not asked a person for anything.</p>}
      {open.length > 0 && (
        <section aria-label="Needs you">
          {open.map((gate) => (
            <OpenGateCard key={gateCardKey(gate)} gate={gate} brief={false} />
          ))}
        </section>
      )}
      {decided.length > 0 && (
        <section aria-label="Decided">
          <h2>Decided</h2>
          {decided.map((gate) => (
            <DecidedGateCard key={gateCardKey(gate)} gate={gate} />
          ))}
        </section>
      )}
    </div>
  );
}
