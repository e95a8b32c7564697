// A key that is pressed for an agent: once, whatever becomes of it, and never into a question, save where it is what the
// adapter rejects that question with (H6).

import type { Console } from './screen-watcher.ts';
import type { DeliveryOutcome } from './delivery-machine.ts';
import type { DeliveryRequest } from './deliver-prompt.ts';

export async function deliverKey(
  console: Console,
  key: string,
  request: Omit<DeliveryRequest, 'text' | 'isBracketed' | 'isConfirmed'>,
): Promise<DeliveryOutcome> {
  const { record, keep, note, isAlive, isGivenUp, mind, timeoutMs } = request;
  if (record.state.kind !== 'begun') return { kind: 'taken-for-done' };
  const finish = (outcome: Extract<DeliveryOutcome, { kind: 'failed' }>): DeliveryOutcome => {
    keep(outcome);
    return outcome;
  };
  let [spentMs, seenAt, wasAsked] = [0, performance.now(), false];
  for (;;) {
    const since = console.changes;
    const screen = await console.look();
    if (!isAlive()) return finish({ kind: 'failed', delivery: 'dead', reason: 'the agent has ended' });
    const now = performance.now();
    if (!wasAsked) spentMs += now - seenAt;
    seenAt = now;
    const dialog = screen?.dialog ?? null;
    const isAsked = dialog !== null && !rejects(dialog.pattern.reject, key);
    if (isAsked !== wasAsked) void note({ delivery: isAsked ? 'blocked-on-dialog' : 'sending' });
    wasAsked = isAsked;
    if (screen !== null && !isAsked && !isGivenUp()) {
      keep({ kind: 'submitted' });
      const put = await console.press([key], screen);
      keep({ kind: put === 'done' ? 'accepted' : 'begun' });
      if (put === 'done') return { kind: 'accepted' };
    }
    if (screen !== null) await mind(screen);
    if (isGivenUp() || spentMs >= timeoutMs) {
      return finish({
        kind: 'failed',
        delivery: isAsked ? 'blocked-on-dialog' : 'not-ready',
        reason: isAsked ? 'the agent asks something else first' : 'the key could not be pressed',
      });
    }
    await console.changed(since, { ms: LOOK_MS });
  }
}

const LOOK_MS = 200;

export function rejects(keys: readonly string[] | null, ...pressed: readonly string[]): boolean {
  return keys !== null && keys.length === pressed.length && keys.every((key, at) => key === pressed[at]);
}
