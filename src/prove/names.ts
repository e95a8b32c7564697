// Names of steps as the workflow names them: MEOW by path (`each.*.build`), Raymond by state, Conductor by id. The steps of
// a template that is entered inside itself have one name, however deep they are: `first.*.build`.

import { segmentMatcher } from '../base/names.ts';
import type { Block, Program, Step } from '../ir/program.ts';
import { type FrameState, frameAround, type RunState, type StepState } from '../kernel/state.ts';

export class Names {
  readonly #naming: ReadonlyMap<Step, Block['naming']>;
  readonly #known = new Map<string, string>();
  readonly #matches = new Map<string, (text: string) => boolean>();

  constructor({ blocks }: Program) {
    this.#naming = new Map(Object.values(blocks).flatMap(({ steps, naming }) => steps.map((step) => [step, naming])));
  }

  of(state: RunState, step: StepState): string {
    const known = this.#known.get(step.id);
    if (known !== undefined) return known;
    const name = `${this.#prefix(state, step)}${step.definition.id}`;
    this.#known.set(step.id, name);
    return name;
  }

  /** Whether a pattern of a claim means the step: by its id, or by its name. */
  matches(pattern: string, state: RunState, step: StepState): boolean {
    const known = this.#matches.get(pattern) ?? segmentMatcher(pattern);
    this.#matches.set(pattern, known);
    return known(this.of(state, step)) || known(step.id);
  }

  #prefix(state: RunState, { frame, definition }: StepState): string {
    const owner = frame.owner === null ? undefined : state.steps.get(frame.owner);
    if (this.#naming.get(definition) !== 'path') return owner === undefined ? '' : `${this.of(state, owner)}.`;
    const place = frame.prefix.slice(0, -1);
    if (place === '') return '';
    const outermost = outermostLike(state, frame)?.steps[0];
    if (outermost !== undefined) return `${this.#prefix(state, outermost)}*.`;
    const above = state.steps.get(place) ?? state.steps.get(place.replace(/\.next$/, ''));
    if (above !== undefined) return `${this.of(state, above)}.`;
    if (owner === undefined) return frame.prefix;
    return `${this.of(state, owner)}.${partOf(owner, frame)}.`;
  }
}

/** The outermost frame of the same block around a frame; null if there is none. */
function outermostLike(state: RunState, frame: FrameState): FrameState | null {
  const block = frame.steps[0]?.definition;
  let found: FrameState | null = null;
  for (let at = frameAround(state, frame); at !== null; at = frameAround(state, at))
    if (at.steps[0]?.definition === block) found = at;
  return found;
}

/** Iterations and rounds are all the same step for an author. */
function partOf(owner: StepState, { prefix, join }: FrameState): string {
  const part = prefix.slice(owner.id.length + 1, -1);
  if (join === 'recover') return 'recover.*';
  const repeats = owner.definition.act.kind === 'each' || /^\d+$/.test(part);
  return repeats ? '*' : part;
}
