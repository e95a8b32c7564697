// Handles dialogs on an agent's screen for those who wait for the agent: performs what dialogs.ts decides. Only the
// first waiter in line is notified.

import type { DialogVerdict, Note } from '../../../engine/ports.ts';
import type { DialogPattern, Timing } from '../../../ir/adapter.ts';
import { Dialogs } from './dialogs.ts';
import type { HookLog } from './hook-log.ts';
import { type Input, pause, type ScreenWatcher } from './screen-watcher.ts';
import type { Screen, SeenDialog } from './screen.ts';

/** Stays in line until disposed. */
export interface DialogWaiter extends Disposable {
  /** Handles a dialog on the screen if this waiter is first in line. */
  handle(screen: Screen): Promise<void>;
}

export type DialogHandler = ReturnType<typeof dialogHandler>;

export function dialogHandler(watcher: Readonly<ScreenWatcher>, hooks: Readonly<HookLog> | null, timing: Timing) {
  const dialogs = new Dialogs(timing);
  const waiters: DialogWaiter[] = [];
  const wakeIn = (ms: number): unknown => setTimeout(() => watcher.wake(), ms).unref();

  /** A dialog reported only by a hook counts if the agent does nothing else. */
  const dialogOn = (screen: Screen): SeenDialog | null => {
    hooks?.catchUp();
    const since = hooks?.blockedSince ?? null;
    if (screen.dialog !== null || since === null || screen.isReady || screen.isBusy) return screen.dialog;
    if (performance.now() - since < timing.visibleMs) return null;
    return { name: UNKNOWN.name, text: screen.text.trimEnd(), pattern: UNKNOWN };
  };

  /** Whether the input arrived at the dialog considered last; the dialog may move between observation and key press. */
  const answer = async (input: Input, screen: Screen): Promise<boolean> => {
    const hasArrived = await watcher.putWhile((seen) => dialogs.shows(dialogOn(seen)), input, screen);
    if (hasArrived) dialogs.pressed(performance.now());
    return hasArrived;
  };

  const handle = async (screen: Screen, note: Note, decided: (verdict: DialogVerdict) => void): Promise<void> => {
    const act = dialogs.consider(dialogOn(screen), performance.now());
    switch (act.kind) {
      case 'nothing':
        return;
      case 'wait':
        wakeIn(act.ms);
        return;
      case 'tell':
        void note({ dialog: act.dialog });
        if (act.dialog === null) wakeIn(0);
        else dialogs.reported();
        return;
      case 'press':
        if (act.verdict !== null) decided(act.verdict);
        await answer({ kind: 'keys', keys: act.keys }, screen);
        return;
      case 'type': {
        decided(act.verdict);
        if (!(await answer({ kind: 'text', text: act.text }, screen))) return;
        await pause(timing.settleMs);
        // The typed answer changes the look of the dialog, so only its name is compared.
        const isSame = ({ dialog }: Screen): boolean => dialog?.name === screen.dialog?.name;
        await watcher.putWhile(isSame, { kind: 'keys', keys: ['Enter'] });
      }
    }
  };

  return {
    dialogOn,
    /** `decided` is called before keys are pressed for a person's decision. */
    join(note: Note, decided: (verdict: DialogVerdict) => void = () => undefined): DialogWaiter {
      const waiter: DialogWaiter = {
        handle: async (screen) => {
          if (waiters[0] === waiter) await handle(screen, note, decided);
        },
        [Symbol.dispose]: () => {
          const at = waiters.indexOf(waiter);
          if (at === 0) dialogs.forget();
          if (at !== -1) waiters.splice(at, 1);
        },
      };
      waiters.push(waiter);
      return waiter;
    },
    decide(verdict: DialogVerdict): void {
      dialogs.decide(verdict);
      watcher.wake();
    },
  };
}

/** A dialog that matches no pattern of the adapter. */
const NO_KEYS = { answer: null, approve: null, reject: null };
const UNKNOWN: DialogPattern = { name: 'question', pattern: '', ...NO_KEYS, cure: null, atStart: false };
