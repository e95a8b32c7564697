// The policies that a workflow names: from the configuration by name, otherwise prompts with the role `policy`. A
// step's policy can only tighten that of the workflow.

import { own } from '../../base/json.ts';
import type { Operation, Policy, PolicyPair } from '../../ir/conducted.ts';
import { OPERATIONS } from '../../ir/conducted.ts';
import { NO_RESTRICTIONS, pathsWithoutEffect, tighten } from '../../ir/policy.ts';
import type { Report } from '../report.ts';
import { listed, suggest } from '../report.ts';
import { textAt } from '../yaml-fields.ts';
import type { YamlMap, YamlScalar } from '../yaml-tree.ts';
import type { ConductorConfig } from './config.ts';
import { oneOf, textsAt, wordAt } from './fields.ts';
import { globsAt } from './paths.ts';
import type { PromptFile } from './prompt-file.ts';
import { isPath, versionedId } from './prompt-file.ts';
import type { Prompts } from './prompts.ts';

export class Policies {
  readonly #report: Report;
  readonly #config: ConductorConfig;
  readonly #prompts: Prompts;
  readonly #read = new Map<PromptFile, Policy>();

  constructor(report: Report, config: ConductorConfig, prompts: Prompts) {
    this.#report = report;
    this.#config = config;
    this.#prompts = prompts;
  }

  /** The named policy; null if none. */
  at(map: YamlMap): Policy | null {
    const name = textAt(this.#report, map, 'policy');
    return name === null ? null : this.#named(name);
  }

  /** `shared`: the policy of the workflow. `step`: the map of a step. */
  of(step: YamlMap, shared: Policy | null): PolicyPair {
    const requested = this.at(step);
    const lockfiles = this.#config.allowLockfiles ? 'allow' : 'deny';
    const around = tighten({ ...NO_RESTRICTIONS, lockfiles }, shared ?? NO_RESTRICTIONS);
    if (requested === null) return { requested: shared, effective: around };
    this.#checkPaths(step, around, requested);
    return { requested, effective: tighten(around, requested) };
  }

  #checkPaths(step: YamlMap, around: Policy, requested: Policy): void {
    const place = step.entries.get('policy')?.value.place ?? step.place;
    for (const glob of pathsWithoutEffect(around, requested)) {
      const message = `"${requested.name ?? ''}" allows ${glob}, which "${around.name ?? ''}" does not: it stays forbidden`;
      const hint = 'A step may only tighten the policy of its workflow: allow it there as well.';
      this.#report.warning('policy-widens', place, message, hint);
    }
  }

  #named(name: YamlScalar): Policy | null {
    const configured = own(this.#config.policies, name.text);
    if (configured !== undefined) return configured;
    if (!isPath(name.text) && versionedId(name.text) === null) {
      const known = Object.keys(this.#config.policies);
      const otherwise = `Configured: ${listed(known) || 'none'}; prompts are named as policy.NAME.v1 or ./NAME.md.`;
      const message = `there is no policy ${JSON.stringify(name.text)}`;
      this.#report.error('unknown-policy', name.place, message, () => suggest(name.text, known, otherwise));
      return null;
    }
    const file = this.#prompts.named('policy', name, 'policy');
    if (file === null) return null;
    const policy = this.#read.get(file) ?? readPolicy(name.text, file);
    this.#read.set(file, policy);
    return policy;
  }
}

function readPolicy(name: string, { report, keys, text }: PromptFile): Policy {
  if (keys === null) return { ...NO_RESTRICTIONS, name, text };
  return {
    name,
    text,
    allowedPaths: globsAt(report, keys, 'allowed_paths', 'allowed_paths: ["src/**"]'),
    forbiddenPaths: globsAt(report, keys, 'forbidden_paths', 'forbidden_paths: [".github/**"]') ?? [],
    forbiddenOperations: operationsAt(report, keys),
    network: wordAt(report, keys, 'network', ['allow', 'deny'] as const) ?? NO_RESTRICTIONS.network,
    access: wordAt(report, keys, 'execution', ['read_only', 'workspace_write'] as const) ?? NO_RESTRICTIONS.access,
    onPrompt: wordAt(report, keys, 'on_prompt', ['fail', 'deny'] as const) ?? NO_RESTRICTIONS.onPrompt,
    lockfiles: wordAt(report, keys, 'lockfiles', ['allow', 'deny'] as const) ?? NO_RESTRICTIONS.lockfiles,
  };
}

function operationsAt(report: Report, keys: YamlMap): readonly Operation[] {
  const words = textsAt(report, keys, 'forbidden_operations', 'forbidden_operations: [delete, commit]') ?? [];
  return words.flatMap((word) => oneOf(report, 'forbidden_operations', word, OPERATIONS) ?? []);
}
