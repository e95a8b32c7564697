// Presses one key for an agent: once, whatever the result, and never into a dialog, unless it is the key that the
// adapter rejects that dialog with (host/6).

import type { ScreenWatcher } from './screen-watcher.ts';
import type { DeliveryOutcome } from './delivery-machine.ts';
import type { DeliveryRequest } from './deliver-prompt.ts';

export async function deliverKey(
  watcher: ScreenWatcher,
  key: string,
  request: Omit<DeliveryRequest, 'text' | 'isBracketed' | 'isConfirmed'>,
): Promise<DeliveryOutcome> {
  const { record, save, note, isAlive, isGivenUp, handleDialog, timeoutMs } = request;
  if (record.state.kind !== 'begun') return { kind: 'assumed-delivered' };
  const finish = (outcome: Extract<DeliveryOutcome, { kind: 'failed' }>): DeliveryOutcome => {
    save(outcome);
    return outcome;
  };
  let [spentMs, seenAt, wasAsked] = [0, performance.now(), false];
  for (;;) {
    const since = watcher.changes;
    const screen = await watcher.observe();
    if (!isAlive()) return finish({ kind: 'failed', delivery: 'dead', reason: 'the agent has ended' });
    const now = performance.now();
    if (!wasAsked) spentMs += now - seenAt;
    seenAt = now;
    const dialog = screen?.dialog ?? null;
    const isAsked = dialog !== null && !rejects(dialog.pattern.reject, key);
    if (isAsked !== wasAsked) void note({ delivery: isAsked ? 'blocked-on-dialog' : 'sending' });
    wasAsked = isAsked;
    if (screen !== null && !isAsked && !isGivenUp()) {
      save({ kind: 'submitted' });
      const put = await watcher.press([key], screen);
      save({ kind: put === 'done' ? 'accepted' : 'begun' });
      if (put === 'done') return { kind: 'accepted' };
    }
    if (screen !== null) await handleDialog(screen);
    if (isGivenUp() || spentMs >= timeoutMs) {
      return finish({
        kind: 'failed',
        delivery: isAsked ? 'blocked-on-dialog' : 'not-ready',
        reason: isAsked ? 'the agent asks something else first' : 'the key could not be pressed',
      });
    }
    await watcher.untilChanged(since, { ms: POLL_MS });
  }
}

const POLL_MS = 200;

export function rejects(keys: readonly string[] | null, ...pressed: readonly string[]): boolean {
  return keys !== null && keys.length === pressed.length && keys.every((key, at) => key === pressed[at]);
}
