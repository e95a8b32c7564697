// Periods in which neither an engine nor a process of the run was there. Durations leave them out.
//
// A period begins with the last record of an engine, since nobody records its death, and ends with the resume. An effect
// that went on meanwhile shortens it.

import type { EffectSpec } from '../ir/effect.ts';

/** In milliseconds since 1970. */
export interface Absence {
  readonly from: number;
  readonly to: number;
}

/** Whether an effect goes on without an engine. */
export function outlivesEngine(effect: EffectSpec<unknown> | null): boolean {
  return effect?.kind === 'command' || effect?.kind === 'turn' || effect?.kind === 'prompt';
}

export function withAbsence(absences: readonly Absence[], from: number, to: number): readonly Absence[] {
  return from < to ? [...absences, { from, to }] : absences;
}

/** Without the time in which an effect ran, `from` its start. */
export function shortened(absences: readonly Absence[], from: number, until: number): readonly Absence[] {
  if ((absences.at(-1)?.to ?? 0) < from) return absences;
  return absences
    .map((absence) => (from > absence.from ? absence : { ...absence, from: Math.max(absence.from, until) }))
    .filter((absence) => absence.from < absence.to);
}

/** Milliseconds between two moments, without absences. */
export function presentTime(absences: readonly Absence[], from: number, to: number): number {
  const absent = absences.map((absence) => Math.min(to, absence.to) - Math.max(from, absence.from));
  return to - from - absent.reduce((sum, ms) => sum + Math.max(0, ms), 0);
}
