// The keys of a policy, in the front matter of a prompt and in a configuration.

export const POLICY_KEYS: readonly string[] = [
  'allowed_paths',
  'forbidden_paths',
  'forbidden_operations',
  'network',
  'execution',
  'on_prompt',
  'lockfiles',
];
