// How far a prompt has come, in words: apart from the work that it asks for.

import type { Delivery } from '../ir/effect.ts';

/** After the name of the step, or alone. */
export const DELIVERY_TEXTS: Readonly<Record<Delivery, string>> = {
  sending: 'prompt on its way',
  accepted: 'prompt accepted',
  queued: 'prompt queued behind what the agent is doing',
  'draft-stuck': 'prompt stuck in the input of its agent',
  'blocked-on-dialog': 'prompt waits: its agent asks something',
  'not-ready': 'prompt waits: its agent is not ready',
  dead: 'prompt not delivered: its agent is gone',
};

/** The agent has it. */
export function isDelivered(delivery: Delivery): boolean {
  return delivery === 'accepted' || delivery === 'queued';
}
