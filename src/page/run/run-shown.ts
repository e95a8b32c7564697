// What all parts of a run's page draw: the run as it was after the record that is shown.

import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { present } from '../../base/errors.ts';
import { isInterrupted } from '../../view/status.ts';
import type { Spans } from '../../view/spans.ts';
import type { RunName } from '../../web/protocol.ts';
import type { RunSelection } from '../addresses.ts';
import { now } from '../clock.ts';
import type { RunPicture } from '../run-store.ts';

export interface RunShown extends RunPicture {
  readonly of: RunName;
  readonly selection: RunSelection;
  readonly spans: Spans;
  /** It should be running, but has no engine. */
  readonly interrupted: boolean;
}

export const RunContext = createContext<RunShown | null>(null);

export function useRunShown(): RunShown {
  return present(useContext(RunContext), 'this component is a part of the page of a run');
}

/**
 * The time for clocks, in milliseconds since 1970: it moves only while an engine works on the run and its last record is
 * shown. Components that call it are drawn again each second then.
 */
export function shownTime({ state, isLive, interrupted }: RunShown): number {
  const last = state.endedAt ?? state.recordedAt ?? 0;
  return isLive && !interrupted && state.phase !== 'ended' ? Math.max(now.value, last) : last;
}

export function isWithoutEngine({ state, engine, isLive }: RunPicture): boolean {
  return isLive && isInterrupted(state, engine !== null);
}
