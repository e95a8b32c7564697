// Patterns about steps and gates that the workflow does not have. What a test expects of them would hold by mistake.

import { didYouMean, segmentMatcher } from '../base/names.ts';
import type { Json } from '../base/json.ts';
import type { Claim } from '../ir/claim.ts';
import { writtenNames } from '../prove/unreached.ts';
import { namesIn } from './commands.ts';
import type { TestFailure } from './failures.ts';
import type { WorkflowTest } from './test-file.ts';
import type { WorldEnd } from './world.ts';

/** One failure for each path. */
export function judgeNames(
  { run, expect: { steps, outcomes, never, order, visits } }: Pick<WorkflowTest, 'run' | 'expect'>,
  claims: readonly Claim[],
  end: Pick<WorldEnd, 'state' | 'records'>,
): readonly TestFailure[] {
  const names = new KnownNames(end);
  const about = (path: string, expected: Json, steps: readonly string[], gate: string | null = null) => {
    const messages = [...steps.map((step) => names.stepProblem(step)), names.gateProblem(gate)];
    const message = messages.find((each) => each !== null);
    return message === undefined ? [] : [{ expect: path, expected, got: null, message: message ?? '' }];
  };
  return [
    ...run.flatMap((pattern, index) => about(`run.${index}`, pattern, [pattern])),
    ...[...steps].flatMap(([pattern, status]) => about(`steps.${pattern}`, status, [pattern])),
    ...[...outcomes].flatMap(([pattern, outcome]) => about(`outcomes.${pattern}`, outcome, [pattern])),
    ...never.flatMap((pattern, index) => about(`never.${index}`, pattern, [pattern])),
    ...order.flatMap(({ text, before, after }, index) => about(`order.${index}`, text, [before, after])),
    ...[...visits].flatMap(([pattern, { written }]) => about(`visits.${pattern}`, written, [pattern])),
    ...claims.flatMap((claim, index) => about(`claim.${index}`, null, stepsOf(claim), gateOf(claim))),
  ];
}

function stepsOf(claim: Claim): readonly string[] {
  switch (claim.kind) {
    case 'never':
      return claim.unless === null ? [claim.step] : [claim.step, claim.unless];
    case 'always':
    case 'alone':
      return [claim.step];
    case 'at-most':
      return Object.keys(claim.limits.visits);
    case 'ends':
    case 'cleaned':
      return [];
  }
}

function gateOf(claim: Claim): string | null {
  return claim.kind === 'never' ? claim.unlessGate : null;
}

interface Written {
  readonly steps: readonly string[];
  /** Null if a gate may have any name. */
  readonly gates: readonly string[] | null;
}

class KnownNames {
  readonly #end: Pick<WorldEnd, 'state' | 'records'>;
  #known: Written | null = null;
  #ids: readonly string[] | null = null;

  constructor(end: Pick<WorldEnd, 'state' | 'records'>) {
    this.#end = end;
  }

  /** Null if the workflow may have such a step. */
  stepProblem(pattern: string): string | null {
    if (this.#end.state.steps.has(pattern) || this.#hasGrown) return null;
    const { steps } = this.#written();
    if (steps.some((name) => mayMean(pattern, name)) || this.#happened().some(segmentMatcher(pattern))) return null;
    return `the workflow has no step ${pattern}; ${didYouMean(pattern, steps)}its steps: ${steps.join(', ')}`;
  }

  gateProblem(gate: string | null): string | null {
    if (gate === null || this.#hasGrown) return null;
    const { gates } = this.#written();
    if (gates === null || gates.includes(gate)) return null;
    const known = gates.length === 0 ? 'it has no gates' : `its gates: ${gates.join(', ')}`;
    return `the workflow has no gate ${gate}; ${didYouMean(gate, gates)}${known}`;
  }

  /** A workflow that an answer names may have any steps. */
  get #hasGrown(): boolean {
    return this.#end.records.some(({ decisions }) => decisions.some(({ kind }) => kind === 'program-grown'));
  }

  #written(): Written {
    if (this.#known !== null) return this.#known;
    const { steps, gates } = writtenNames(this.#end.state.program);
    this.#known = { steps: [...steps, 'cleanup'], gates };
    return this.#known;
  }

  #happened(): readonly string[] {
    const namesOf = namesIn(this.#end.state.program);
    this.#ids ??= [...this.#end.state.steps.keys()].flatMap((id) => namesOf(id));
    return this.#ids;
  }
}

/** `name`: as the workflow names the step, with `*` for what repeats. */
function mayMean(pattern: string, name: string): boolean {
  const matches = segmentMatcher(pattern);
  const ids = [name, name.replaceAll('*', '0'), `main.1.${name}`, `${name}#1`];
  const unnumbered = pattern.replace(/#.*$/, '').replace(/^.*\.\d+\./, '');
  return ids.some(matches) || segmentMatcher(name)(pattern) || segmentMatcher(unnumbered)(name);
}
