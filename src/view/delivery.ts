// Texts for the delivery status of a prompt, which is independent of the work.

import type { Delivery } from '../ir/effect.ts';

/** Used after a step's name, or alone. */
export const DELIVERY_TEXTS: Readonly<Record<Delivery, string>> = {
  sending: 'prompt is being sent',
  accepted: 'prompt accepted',
  queued: 'prompt queued until the agent is free',
  'draft-stuck': 'prompt stuck in the input field of its agent',
  'blocked-on-dialog': 'prompt waits: its agent asks a question',
  'not-ready': 'prompt waits: its agent is not ready',
  dead: 'prompt not delivered: its agent has exited',
};

export function isDelivered(delivery: Delivery): boolean {
  return delivery === 'accepted' || delivery === 'queued';
}
