// The policies that a workflow names: from the configuration by name, otherwise prompts with the role `policy`. A
// step's policy can only tighten that of the workflow.

import { own } from '../../base/json.ts';
import { OPERATIONS, type Policy, type PolicyPair } from '../../ir/conductor.ts';
import { NO_RESTRICTIONS, pathsWithoutEffect, tighten } from '../../ir/policy.ts';
import { listed, oneOf, suggest } from '../report.ts';
import { textAt } from '../yaml-fields.ts';
import type { YamlMap } from '../yaml-tree.ts';
import { ACCESS, ALLOW, ON_PROMPT } from './config-keys.ts';
import { globsAt, textsAt, wordAt } from './fields.ts';
import { isPath, type PromptFile, versionedId } from './prompts.ts';
import type { Reading } from './syntax.ts';

/** The policy of a step under that of the workflow. */
export function policyFor(reading: Reading, step: YamlMap): PolicyPair {
  const { report, config, defaults } = reading;
  const requested = policyAt(reading, step);
  const lockfiles = config.allowLockfiles ? 'allow' : 'deny';
  const around = tighten({ ...NO_RESTRICTIONS, lockfiles }, defaults.policy ?? NO_RESTRICTIONS);
  if (requested === null) return { requested: defaults.policy, effective: around };
  const place = step.entries.get('policy')?.value.place ?? step.place;
  for (const glob of pathsWithoutEffect(around, requested)) {
    const message = `"${requested.name ?? ''}" allows ${glob}, which "${around.name ?? ''}" does not: it stays forbidden`;
    const hint = 'A step may only tighten the policy of its workflow: allow it there as well.';
    report.warning('policy-widens', place, message, hint);
  }
  return { requested, effective: tighten(around, requested) };
}

/** The policy that a map names; null if none. */
export function policyAt(reading: Pick<Reading, 'report' | 'config' | 'prompts'>, map: YamlMap): Policy | null {
  const { report, config, prompts } = reading;
  const name = textAt(report, map, 'policy');
  if (name === null) return null;
  const configured = own(config.policies, name.text);
  if (configured !== undefined) return configured;
  if (!isPath(name.text) && versionedId(name.text) === null) {
    const known = Object.keys(config.policies);
    const otherwise = `Configured: ${listed(known) || 'none'}; prompts are named as policy.NAME.v1 or ./NAME.md.`;
    const message = `there is no policy ${JSON.stringify(name.text)}`;
    return report.error('unknown-policy', name.place, message, () => suggest(name.text, known, otherwise));
  }
  const file = prompts.named('policy', name, 'policy');
  return file === null ? null : readPolicy(name.text, file);
}

function readPolicy(name: string, { report, keys, text }: PromptFile): Policy {
  const operations = textsAt(report, keys, 'forbidden_operations', 'forbidden_operations: [delete, commit]') ?? [];
  return {
    name,
    text,
    allowedPaths: globsAt(report, keys, 'allowed_paths', 'allowed_paths: ["src/**"]'),
    forbiddenPaths: globsAt(report, keys, 'forbidden_paths', 'forbidden_paths: [".github/**"]') ?? [],
    forbiddenOperations: operations.flatMap((each) => oneOf(report, 'forbidden_operations', each, OPERATIONS) ?? []),
    network: wordAt(report, keys, 'network', ALLOW) ?? NO_RESTRICTIONS.network,
    access: wordAt(report, keys, 'execution', ACCESS) ?? NO_RESTRICTIONS.access,
    onPrompt: wordAt(report, keys, 'on_prompt', ON_PROMPT) ?? NO_RESTRICTIONS.onPrompt,
    lockfiles: wordAt(report, keys, 'lockfiles', ALLOW) ?? NO_RESTRICTIONS.lockfiles,
  };
}
