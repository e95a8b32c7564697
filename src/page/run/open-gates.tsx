// The gates of a run that wait for a person, above its views.

import { openGates } from '../../view/status.ts';
import { runAddress } from '../addresses.ts';
import { gateCardKey, OpenGateCard } from './gate-card.tsx';
import { useRunShown } from './run-shown.ts';

/** More are on the page of gates. */
const STRIP_MAX = 2;

export function OpenGates() {
  const { of, state, selection, isLive } = useRunShown();
  const open = openGates(state);
  if (open.length === 0 || !isLive) return null;
  return (
    <section class="strip" aria-label="Needs you">
      {open.slice(0, STRIP_MAX).map((gate) => (
        <OpenGateCard key={gateCardKey(gate)} gate={gate} brief />
      ))}
      {open.length > STRIP_MAX && (
        <a href={runAddress(of, 'gates', selection)}>{open.length - STRIP_MAX} more wait for you</a>
      )}
    </section>
  );
}
