// Which gate a person means: the only open one if none is named. A misspelt name is refused, since a decision about a gate
// that does not exist would wait for it forever. An answer to a gate that asks only for approval is refused as well.

import { UsageError } from '../base/errors.ts';
import { nearest } from '../base/names.ts';
import type { Store } from '../engine/ports.ts';
import { openGates } from '../view/status.ts';
import { readRun } from './runs.ts';
import { shownRun } from './shown-run.ts';

export async function chooseGate(store: Store, id: string, wanted: string | undefined): Promise<string> {
  const { state } = await shownRun(store, await readRun(store, id));
  const open = openGates(state).map((gate) => gate.id);
  if (wanted === undefined) {
    const [only] = open;
    if (only !== undefined && open.length === 1) return only;
    if (only === undefined && (state.end === 'done' || state.end === 'failed') && state.phase === 'ended')
      throw new UsageError(`run ${id} has ended: it is ${state.end}`, `meow status ${id} shows it`);
    if (only === undefined && state.phase === 'ended')
      throw new UsageError(`run ${id} is ${state.end}, and no gate is open`, `resume it: meow resume ${id}`);
    if (only === undefined)
      throw new UsageError(`run ${id} has no open gate yet`, `decide in advance: meow approve ${id} GATE`);
    throw new UsageError(`run ${id} has ${open.length} open gates`, `say which: ${open.join(', ')}`);
  }
  if (open.includes(wanted) || state.gates.has(wanted)) return wanted;
  const near = nearest(wanted, open);
  // The workflow may ask for it later.
  const isNamed = near === null || (await store.programText(id)).split(/[^\w.-]+/).includes(wanted);
  if (isNamed) return wanted;
  throw new UsageError(`run ${id} has no gate ${wanted}`, `did you mean ${near}? open now: ${open.join(', ')}`);
}

/** An answer approves. A GATE of a Conductor workflow asks no question, so a text like "not yet" must not pass it. */
export async function requireQuestion(store: Store, id: string, gate: string): Promise<void> {
  const { state } = await readRun(store, id);
  const step = openGates(state).find((each) => each.id === gate)?.step ?? null;
  if (step === null || state.steps.get(step)?.definition.executor !== 'gate') return;
  throw new UsageError(
    `gate ${gate} asks for approval, and takes no answer`,
    `decide: meow approve ${id} ${gate} --notes TEXT, or meow reject ${id} ${gate} --reason TEXT`,
  );
}
