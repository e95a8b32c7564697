// What became of the prompts of each agent, from the records of a run: when each was asked for, how its delivery went on, what
// the agent asked, and how it ended. Data only.

import type { Decision, JournalRecord } from '../kernel/decision.ts';

export interface PromptHistory {
  /** Of all prompts of the agent, from 1. */
  readonly number: number;
  readonly step: string;
  readonly attempt: number;
  /** In order. */
  readonly events: readonly PromptEvent[];
  /** Whether it goes on. */
  readonly isOpen: boolean;
}

export interface PromptEvent {
  readonly at: number;
  readonly text: string;
  readonly tone: 'ok' | 'run' | 'you' | 'bad';
}

interface Noted extends PromptEvent {
  readonly seq: number;
}

interface Prompt {
  readonly number: number;
  readonly step: string;
  readonly attempt: number;
  readonly events: Noted[];
  endSeq: number;
}

type Delivery = NonNullable<Extract<Decision, { kind: 'step-progressed' }>['progress']['delivery']>;

const DELIVERIES: Readonly<Record<Delivery, Pick<PromptEvent, 'text' | 'tone'>>> = {
  sending: { text: 'being delivered', tone: 'ok' },
  accepted: { text: 'accepted', tone: 'ok' },
  queued: { text: 'queued behind its work', tone: 'ok' },
  'draft-stuck': { text: 'not delivered: its input cannot be cleared', tone: 'bad' },
  'blocked-on-dialog': { text: 'waits: the agent asks something else first', tone: 'you' },
  'not-ready': { text: 'not delivered: the agent is not ready', tone: 'bad' },
  dead: { text: 'the agent has ended', tone: 'bad' },
};

export class Deliveries {
  readonly #prompts = new Map<string, Prompt[]>();
  readonly #agentOf = new Map<string, string>();

  note({ seq, at, decisions }: Pick<JournalRecord, 'seq' | 'at' | 'decisions'>): void {
    for (const decision of decisions) this.#decided(decision, seq, at);
  }

  /** The latest prompt as it was after the record `seq`; null if there was none. */
  latest(agent: string, seq: number): PromptHistory | null {
    const prompt = (this.#prompts.get(agent) ?? []).findLast(({ events }) => (events[0]?.seq ?? Infinity) <= seq);
    if (prompt === undefined) return null;
    const { number, step, attempt, events, endSeq } = prompt;
    return { number, step, attempt, events: events.filter((event) => event.seq <= seq), isOpen: endSeq > seq };
  }

  #decided(decision: Decision, seq: number, at: number): void {
    const add = (step: string, text: string, tone: PromptEvent['tone'], isEnd = false): void => {
      const prompt = this.#of(step);
      if (prompt === undefined || prompt.endSeq !== Infinity) return;
      if (prompt.events.at(-1)?.text !== text) prompt.events.push({ seq, at, text, tone });
      if (isEnd) prompt.endSeq = seq;
    };
    switch (decision.kind) {
      case 'step-started': {
        const { step, attempt, agent, effect } = decision;
        if (agent === null || (effect?.kind !== 'prompt' && effect?.kind !== 'turn')) return;
        const prompts = this.#prompts.get(agent) ?? [];
        this.#prompts.set(agent, prompts);
        this.#agentOf.set(step, agent);
        prompts.push({ number: prompts.length + 1, step, attempt, events: [], endSeq: Infinity });
        add(step, 'journalled', 'ok');
        return;
      }
      case 'step-progressed': {
        const { delivery, dialog } = decision.progress;
        if (delivery !== undefined) {
          const { text, tone } = DELIVERIES[delivery];
          add(decision.step, text, tone);
        }
        if (dialog !== undefined)
          add(decision.step, dialog === null ? 'at work again' : 'asks you', dialog === null ? 'ok' : 'you');
        return;
      }
      case 'step-completing':
        return add(decision.step, 'reported that it is done', 'ok');
      case 'step-done':
        return add(decision.step, 'done', 'ok', true);
      case 'step-failed':
        return add(decision.step, `failed: ${decision.failure.message}`, 'bad', true);
      case 'step-failed-once':
        return add(decision.step, `failed, and is tried again: ${decision.failure.message}`, 'bad', true);
      case 'step-lost':
        return add(decision.step, 'lost with the engine', 'bad', true);
      case 'step-parked':
        return add(decision.step, 'waits for a usage limit', 'bad', true);
      case 'steps-skipped':
        for (const step of decision.steps) add(step, 'stopped', 'bad', true);
        return;
      default:
    }
  }

  #of(step: string): Prompt | undefined {
    return this.#prompts.get(this.#agentOf.get(step) ?? '')?.findLast((prompt) => prompt.step === step);
  }
}
