// Reads the `[[claim]]` tables of a test file, `deploy.test.toml` beside its workflow. Its other tables belong to
// `meow test`, and are passed over here.
//
//   [[claim]]
//   never = "deploy-prod"          with `unless = STEP` or `unless_gate = GATE`
//   always = "notify-*"            with `when = "any"`, "done" or "failed"
//   at_most = { turns = 40, commands = 9, agents_at_once = 3, usd = 20.0, visits = { fix = 3 } }
//   alone = "each.*.merge"
//   ends = true
//   cleaned = true

import { own } from '../../base/json.ts';
import { segmentMatcher } from '../../base/names.ts';
import { type Diagnostic, hasErrors, makeSource } from '../../base/source.ts';
import type { Claim, ClaimedLimits } from '../../ir/claim.ts';
import { namesOf } from '../keys.ts';
import { checkKeys, createReport, listed, missing, type Report, suggest } from '../report.ts';
import { booleanAt, countAt, listAt, stringAt, tableAt, wordAt, wrongType } from '../toml-fields.ts';
import type { TomlEntry, TomlString, TomlTable } from '../toml-tree.ts';
import { readToml } from '../toml.ts';
import { CLAIM, CLAIM_ENDS, CLAIMED_LIMITS, EXCEPTIONS, SUBJECT_NAMES, TEST_FILE } from './keys.ts';

/** Names that claims may be about. */
export interface KnownNames {
  /** As the workflow names them, with `*` for what repeats. */
  readonly steps: Iterable<string>;
  /** Null if a gate may have any name. */
  readonly gates: readonly string[] | null;
}

/** `claims`: in the order of the file; null if a diagnostic is an error. */
export interface ReadClaims {
  readonly claims: readonly Claim[] | null;
  readonly diagnostics: readonly Diagnostic[];
}

const HINT = 'Write each claim as a table of its own: [[claim]], and below it never = "deploy-prod".';

/** `name`: the path as the user wrote it. */
export function readClaims(text: string, name: string, known: KnownNames | null): ReadClaims {
  const report = createReport(makeSource(name, text));
  const root = text.trim() === '' ? null : readToml(report);
  const reader = new ClaimReader(report, known);
  const claims = root === null ? [] : reader.claims(root);
  const diagnostics = report.diagnostics();
  return { claims: hasErrors(diagnostics) ? null : claims, diagnostics };
}

/** For the reader of a whole test file. */
export function claimsIn(report: Report, root: TomlTable): readonly Claim[] {
  return new ClaimReader(report, null).claims(root);
}

class ClaimReader {
  readonly #report: Report;
  readonly #steps: readonly string[] | null;
  readonly #gates: readonly string[] | null;

  constructor(report: Report, known: KnownNames | null) {
    this.#report = report;
    this.#steps = known === null ? null : [...known.steps];
    this.#gates = known?.gates ?? null;
  }

  claims(root: TomlTable): readonly Claim[] {
    checkKeys(this.#report, root, namesOf(TEST_FILE.root.keys), 'the test file', 'error');
    return (listAt(this.#report, root, 'claim', HINT)?.items ?? []).flatMap((item) => {
      if (item.kind === 'table') return this.#claim(item) ?? [];
      this.#report.error('wrong-type', item.place, 'a claim must be a table', HINT);
      return [];
    });
  }

  #claim(table: TomlTable): Claim | null {
    const report = this.#report;
    const [subject, second] = [...table.entries.values()].filter(({ key }) => SUBJECT_NAMES.includes(key));
    if (subject === undefined) {
      checkKeys(report, table, namesOf(CLAIM.keys), 'a claim', 'error');
      return missing(report, table.place, 'the claim', 'never', `A claim has one of ${listed(SUBJECT_NAMES)}.`);
    }
    if (second !== undefined) {
      const message = `a claim has one subject, and this has "${subject.key}" and "${second.key}"`;
      return report.error('two-subjects', second.keyPlace, message, 'Write another [[claim]] for the second.');
    }
    const beside = own<readonly string[]>(EXCEPTIONS, subject.key) ?? [];
    checkKeys(report, table, [subject.key, ...beside], `a claim with "${subject.key}"`, 'error');
    return this.#read(table, subject);
  }

  #read(table: TomlTable, { key, value }: TomlEntry): Claim | null {
    const report = this.#report;
    switch (key) {
      case 'never': {
        const step = this.#stepAt(table, key);
        const unless = this.#stepAt(table, 'unless');
        const gate = this.#gateAt(table);
        const both = unless !== null && gate !== null ? table.entries.get('unless_gate') : undefined;
        if (both !== undefined)
          report.error('two-exceptions', both.keyPlace, 'a claim has one exception', 'Keep unless or unless_gate.');
        return step === null ? null : { kind: 'never', step, unless, unlessGate: gate };
      }
      case 'always': {
        const step = this.#stepAt(table, key);
        const when = wordAt(report, table, 'when', CLAIM_ENDS) ?? 'any';
        return step === null ? null : { kind: 'always', step, when };
      }
      case 'alone': {
        const step = this.#stepAt(table, key);
        return step === null ? null : { kind: 'alone', step };
      }
      case 'at_most': {
        const limits = tableAt(report, table, key, 'For example at_most = { turns = 40 }.');
        return limits === null ? null : { kind: 'at-most', limits: this.#limits(limits) };
      }
      default: {
        const isTrue = booleanAt(report, table, key);
        if (isTrue === false)
          report.error('empty-claim', value.place, `${key} = false claims nothing`, 'Remove the claim.');
        return isTrue === null ? null : { kind: key === 'ends' ? 'ends' : 'cleaned' };
      }
    }
  }

  #limits(table: TomlTable): ClaimedLimits {
    const report = this.#report;
    checkKeys(report, table, namesOf(CLAIMED_LIMITS.keys), '"at_most"', 'error');
    if (table.entries.size === 0)
      report.error('empty-claim', table.place, 'at_most has no limit', 'For example at_most = { turns = 40 }.');
    const turns = countAt(report, table, 'turns', 0);
    const commands = countAt(report, table, 'commands', 0);
    const agents = countAt(report, table, 'agents_at_once', 0);
    const usd = this.#amountAt(table, 'usd');
    const visits = tableAt(report, table, 'visits', 'For example visits = { fix = 3 }.');
    const counts = [...(visits?.entries.keys() ?? [])].flatMap((step) => {
      const place = visits?.entries.get(step)?.keyPlace;
      if (place !== undefined) this.#checkStep(step, place);
      const count = visits === null ? null : countAt(report, visits, step, 0);
      return count === null ? [] : [[step, count] as const];
    });
    return {
      ...(turns === null ? {} : { turns }),
      ...(commands === null ? {} : { commands }),
      ...(agents === null ? {} : { agentsAtOnce: agents }),
      ...(usd === null ? {} : { usd }),
      visits: Object.fromEntries(counts),
    };
  }

  #amountAt(table: TomlTable, key: string): number | null {
    const value = table.entries.get(key)?.value;
    if (value === undefined) return null;
    if ((value.kind === 'integer' || value.kind === 'float') && value.value >= 0) return value.value;
    return wrongType(this.#report, value, `"${key}" must be an amount`, `For example ${key} = 2.50, without quotes.`);
  }

  #stepAt(table: TomlTable, key: string): string | null {
    const found = this.#filled(table, key, `Name a step: ${key} = "build"; * matches any characters.`);
    if (found !== null) this.#checkStep(found.value, found.place);
    return found?.value ?? null;
  }

  #gateAt(table: TomlTable): string | null {
    const found = this.#filled(table, 'unless_gate', 'Name a gate: unless_gate = "release".');
    if (found === null) return null;
    const gates = this.#gates;
    if (gates !== null && !gates.includes(found.value)) {
      const hint = suggest(
        found.value,
        gates,
        gates.length === 0 ? 'It has no gates.' : `Its gates: ${listed(gates)}.`,
      );
      this.#report.error('unknown-gate', found.place, `the workflow has no gate "${found.value}"`, hint);
    }
    return found.value;
  }

  #filled(table: TomlTable, key: string, hint: string): TomlString | null {
    const found = stringAt(this.#report, table, key);
    if (found === null || found.value.trim() !== '') return found;
    return this.#report.error('empty-claim', found.place, `"${key}" is empty`, hint);
  }

  /** A pattern may be about names, or about the ids that `meow status` shows. */
  #checkStep(pattern: string, place: TomlString['place']): void {
    const steps = this.#steps;
    if (steps === null) return;
    const matches = segmentMatcher(pattern);
    const isKnown = steps.some((name) => {
      const ids = [name, name.replaceAll('*', '0'), `main.1.${name}`, `${name}#1`];
      return ids.some((id) => matches(id)) || segmentMatcher(name)(pattern);
    });
    if (isKnown) return;
    const hint = suggest(pattern, steps, `Its steps: ${listed(steps)}.`);
    this.#report.error('unknown-step', place, `the workflow has no step "${pattern}"`, hint);
  }
}
