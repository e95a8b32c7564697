// An agent after a person has decided about what it asked. Keys that answer a question may end the agent's turn as well, and no
// hook tells of that: it sits at its prompt, and waits for somebody to say what it is to do instead. Pure: screens go in.
//
// O1  It is told to go on once it has rested for a while, with nothing in its input, and nothing has told that it went on by
//     itself: no hook, and where it has none, no work that is to be seen.
// O2  Once for each decision, in all lives of the engine: what it is told has an id of its own, made from the decision's.

import { nudgeText } from '../../../ir/prompt-text.ts';
import type { PromptMessage } from '../../../ir/prompt-text.ts';
import type { TerminalWays } from '../../../ir/adapter.ts';
import type { HookLog } from './hook-log.ts';
import type { DialogVerdict } from '../../../engine/ports.ts';
import type { Screen } from './screen.ts';

/** What was decided last about what an agent asked while it worked on a message. */
export interface Decided {
  /** From 1, for each message. */
  readonly number: number;
  /** What was asked: `permission`. */
  readonly name: string;
  readonly isRejected: boolean;
  /** What the person said about it. */
  readonly reason: string | null;
  /** The agent has gone on, or was told to. */
  readonly isOver: boolean;
}

export function decidedBy({ dialog, approved, answer, notes }: DialogVerdict, before: Decided | null): Decided {
  const reason = notes?.trim() ?? '';
  return {
    number: (before?.number ?? 0) + 1,
    name: dialog.name,
    isRejected: !approved && answer === null,
    reason: reason === '' ? null : reason,
    isOver: false,
  };
}

/** The same of an agent that nobody has watched for a while: what was decided in that time is not known, nor whether it rests. */
export function leftAlone(before: Decided | null): Decided {
  if (before?.isOver === false) return before;
  return { number: (before?.number ?? 0) + 1, name: '', isRejected: false, reason: null, isOver: false };
}

export class AfterAnswer {
  /** Whether it can be seen that the agent rests. */
  readonly canTell: boolean;
  readonly #hooks: Pick<HookLog, 'tellsRest' | 'lastAct'> | null;
  #decided: Decided | null = null;
  #decidedAt = 0;
  #actBefore = 0;
  #restingSince: number | null = null;

  constructor({ ready, acknowledge }: TerminalWays, hooks: Pick<HookLog, 'tellsRest' | 'lastAct'> | null) {
    this.canTell = ready !== null && acknowledge.busy.length > 0;
    this.#hooks = hooks?.tellsRest === true ? hooks : null;
  }

  begin(decided: Decided, now: number): void {
    this.#decided = decided.isOver ? null : decided;
    this.#decidedAt = now;
    this.#actBefore = this.#hooks?.lastAct ?? 0;
    this.#restingSince = null;
  }

  /** To be called with every screen that is seen. Null: there is nothing to be said, for now or at all. */
  see({ dialog, isReady, isBusy, isQueued, draft }: Screen, now: number): Decided | null {
    const decided = this.#decided;
    if (decided === null || !this.canTell) return null;
    const isAtWork = this.#hooks === null && isBusy && now - this.#decidedAt >= LEFT_MS;
    if (isAtWork || (this.#hooks?.lastAct ?? 0) > this.#actBefore) this.#decided = null;
    const rests = dialog === null && isReady && !isBusy && !isQueued && draft === 'none';
    this.#restingSince = rests ? (this.#restingSince ?? now) : null;
    if (this.#decided === null || this.#restingSince === null || now - this.#restingSince < RESTED_MS) return null;
    this.#decided = null;
    return decided;
  }
}

/** What is still shown of the work before the answer is gone by then. */
const LEFT_MS = 1_000;
/** Who was going to go on, or to report, has done so by then; and a person who was going to type has begun to. */
const RESTED_MS = 3_000;

export function afterAnswer(message: PromptMessage, { number, name, isRejected, reason }: Decided): PromptMessage {
  const id = `${message.id} decided ${number}`;
  if (!isRejected) return { ...message, id, text: nudgeText(message.text) };
  const said = reason === null ? '' : ` They say: ${reason}`;
  const text = `A person has rejected what you asked for (${name}).${said}\n\n${WITHOUT}\n\n${message.text}`;
  return { ...message, id, text };
}

const WITHOUT =
  'Do not ask for it again: go on with your step without it, or in another way, and report with meow done (or the tool ' +
  'done) when it is finished, or as far as it can be.';
