// Who may decide a gate: a list of `NAME` (a person), `agent:NAME` (an agent of the run) and `ssh:NAME` (a person who signs).

export const AGENT_PREFIX = 'agent:';
export const SIGNER_PREFIX = 'ssh:';

export const APPROVER_FORMS = 'NAME, agent:NAME or ssh:NAME';

/** Whether a list may contain it. An empty name could be a variable that was not set, and must not mean anybody. */
export function isApprover(entry: string): boolean {
  return ![AGENT_PREFIX, SIGNER_PREFIX, ''].includes(entry.trim());
}

export function isAgent(entry: string): boolean {
  return entry.startsWith(AGENT_PREFIX);
}

/** Whether only signatures count: one entry that demands a signature demands it of all. */
export function needsSignature(approvers: readonly string[] | null): boolean {
  return approvers?.some((entry) => entry.startsWith(SIGNER_PREFIX)) ?? false;
}
