// What gates, dialogs and questions are called on the page.

import type { FleetNeed } from '../view/fleet.ts';
import type { Asking } from './decisions.ts';
import { line } from './shown-text.ts';

export const KIND_NAMES: Readonly<Record<FleetNeed['kind'], string>> = {
  gate: 'Gate',
  dialog: 'Dialog',
  question: 'Question',
};

/** The name of its article. */
export function needName({ kind, gate, run }: Pick<FleetNeed, 'kind' | 'gate' | 'run'>): string {
  return `${KIND_NAMES[kind]} ${line(gate)} of ${line(run)}`;
}

export function askingOf({ project, run, gate, opened_at: openedAt }: FleetNeed): Asking {
  return { project, run, gate, openedAt };
}
