// What becomes of a turn of which nothing can be kept for people. Agents may write where that is to be: one that is in the way,
// by a link or by taking away permissions, is judged all the same.

import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../sys/errno.ts';
import type { Effect, Outcome } from '../../ir/effect.ts';
import type { Policy } from '../../ir/conducted.ts';
import { failed } from './asking.ts';
import type { OpcodeContext } from './context.ts';
import { changeSummary, endLeft, lookAfter, lookBefore } from './looks.ts';
import { checkPolicy } from './policy-check.ts';
import { sentence } from './workspace.ts';

/** `act` performs a turn. Where an error of the system ends it, that is the answer, unless the turn has violated its policy. */
export async function judgedThough(
  context: OpcodeContext,
  effect: Effect,
  policy: Policy,
  act: () => Promise<Outcome>,
): Promise<Outcome> {
  try {
    return await act();
  } catch (error) {
    if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
    return judge(context, effect, policy, `what it does cannot be recorded: ${error.message}`);
  }
}

async function judge(context: OpcodeContext, effect: Effect, policy: Policy, problem: string): Promise<Outcome> {
  await endLeft(context.run, effect);
  const opened = await context.workspace.open();
  const git = opened.ok ? opened.value.git : null;
  if (git === null) return failed('refused', problem);
  const before = await lookBefore(git, context, effect);
  const after = before.ok ? await lookAfter(git, context, effect, before.value) : before;
  if (!before.ok || !after.ok) return failed('refused', after.ok ? problem : `${problem}; ${sentence(after.error)}`);
  const { changes, head } = after.value;
  const conduct = { ...after.value, before: before.value, after: after.value, denied: 0 };
  const violations = checkPolicy(policy, conduct, context.settings.protectedBranches);
  const outputs = { violations: violations.slice(0, VIOLATIONS_MAX), changes: changeSummary(changes), head };
  const [first] = violations;
  if (first === undefined) return failed('refused', problem, { outputs });
  return failed('policy', `the policy was violated: ${first.message}; and ${problem}`, { outputs });
}

const VIOLATIONS_MAX = 200;
