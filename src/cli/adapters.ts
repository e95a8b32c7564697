// Which agents this version can start. A run that would need others is refused before anything of it has begun.

import type { Program } from '../ir/program.ts';
import { InvalidWorkflow } from './exit.ts';

/** `sim` is the simulated agent, which needs no account. */
export const AVAILABLE_ADAPTERS: readonly string[] = ['sim'];

/** Throws where a step starts an agent that cannot be started. One that is named by a variable is found out later. */
export function refuseAdapters({ blocks }: Program): void {
  for (const { id, act } of Object.values(blocks).flatMap(({ steps }) => steps)) {
    if (act.kind !== 'effect' || act.effect.kind !== 'spawn') continue;
    const { adapter } = act.effect;
    if (typeof adapter !== 'string' || AVAILABLE_ADAPTERS.includes(adapter)) continue;
    throw new InvalidWorkflow(
      `the step ${id} starts an agent with the adapter ${adapter}, which this version of meow does not have`,
      'try the workflow with simulated agents, without an account: --adapter sim',
    );
  }
}
