// An agent after a person decided about its dialog. The keys of the answer may also end the agent's turn, and no hook
// reports that: the agent sits at its prompt and waits for instructions. Pure.
//
// post-dialog/1  The agent is told to continue after it was idle for a while with an empty input, if neither a hook nor
//                (without hooks) visible work shows that it continued by itself.
// post-dialog/2  At most once for each decision, across engine restarts: the message has an id derived from the
//                decision.

import type { DialogVerdict } from '../../../engine/ports.ts';
import type { TerminalProfile } from '../../../ir/adapter.ts';
import { nudgeText, type PromptMessage } from '../../../ir/prompt-text.ts';
import type { HookLog } from './hook-log.ts';
import type { Screen } from './screen.ts';

/** The latest decision about a dialog while the agent worked on a message. */
export interface DialogDecision {
  /** From 1, for each message. */
  readonly number: number;
  /** Name of the dialog, such as `permission`. */
  readonly name: string;
  readonly isRejected: boolean;
  /** The person's comment. */
  readonly reason: string | null;
  /** The agent continued or was told to. */
  readonly isOver: boolean;
}

export function decisionFrom(verdict: DialogVerdict, before: DialogDecision | null): DialogDecision {
  const isRejected = !verdict.approved && verdict.answer === null;
  const reason = verdict.notes?.trim() || null;
  return { number: (before?.number ?? 0) + 1, name: verdict.dialog.name, isRejected, reason, isOver: false };
}

/** For an agent that was not watched for a while: neither decisions in that time nor idleness are known. */
export function unwatchedDecision(before: DialogDecision | null): DialogDecision {
  if (before?.isOver === false) return before;
  return { number: (before?.number ?? 0) + 1, name: '', isRejected: false, reason: null, isOver: false };
}

export type PostDialog = ReturnType<typeof postDialog>;

export function postDialog(
  { ready, acknowledge, timing }: TerminalProfile,
  hooks: Pick<HookLog, 'reportsIdle' | 'lastActivity'> | null,
) {
  const canDetect = ready !== null && acknowledge.busy.length > 0;
  const hook = hooks?.reportsIdle === true ? hooks : null;
  let current: DialogDecision | null = null;
  let [decidedAt, actBefore] = [0, 0];
  let restingSince: number | null = null;
  return {
    canDetect,
    begin(decided: DialogDecision, now: number): void {
      current = decided.isOver ? null : decided;
      decidedAt = now;
      actBefore = hook?.lastActivity ?? 0;
      restingSince = null;
    },
    /** Call with every observed screen. Returns null if nothing is to be said. */
    observe({ dialog, isReady, isBusy, isQueued, draft }: Screen, now: number): DialogDecision | null {
      const decided = current;
      if (decided === null || !canDetect) return null;
      // Traces of the work before the answer are gone by then.
      const isAtWork = hook === null && isBusy && now - decidedAt >= timing.visibleMs;
      if (isAtWork || (hook?.lastActivity ?? 0) > actBefore) current = null;
      const rests = dialog === null && isReady && !isBusy && !isQueued && draft === 'none';
      restingSince = rests ? (restingSince ?? now) : null;
      if (current === null || restingSince === null || now - restingSince < timing.reactMs) return null;
      current = null;
      return decided;
    },
  };
}

export function postDialogMessage(message: PromptMessage, decided: DialogDecision): PromptMessage {
  const id = `${message.id} decided ${decided.number}`;
  if (!decided.isRejected) return { ...message, id, text: nudgeText(message.text) };
  const reason = decided.reason === null ? '' : ` They say: ${decided.reason}`;
  const rejection = `A person has rejected what you asked for (${decided.name}).${reason}`;
  return { ...message, id, text: `${rejection}\n\n${WITHOUT}\n\n${message.text}` };
}

const WITHOUT =
  'Do not ask for it again: continue your step without it, or in another way, and report with meow done (or the tool ' +
  'done) when it is finished, or as far as it can be.';
