// Warns of prompts that leave their agent to guess, and of forks that cannot be followed.

import { hasErrors } from '../../base/source.ts';
import { baseName } from '../language.ts';
import { stemOf } from './names.ts';
import { isFork, type StateSyntax } from './syntax.ts';

export function checkHabits(states: Iterable<StateSyntax>): void {
  for (const state of states) {
    if (state.body.kind === 'prompt') checkPrompt(state);
    checkForks(state);
  }
}

function checkPrompt({ name, report, place, body, policy, mentionedTags }: StateSyntax): void {
  // With an error in its front matter, its policy is unknown.
  if (policy === null && mentionedTags.length === 0 && !hasErrors(report.diagnostics())) {
    const message = `${name} does not say how its agent is to end: it mentions no transition`;
    report.warning('no-transition', place, message, 'Tell it to end with <goto>NEXT.md</goto> or <result>…</result>.');
  }
  // A single transition need not be mentioned: the agent may leave it out.
  if (policy === null || policy.allowed.length < 2) return;
  for (const { tag, target, place: where } of policy.allowed) {
    if (target === null || body.text.includes(stemOf(baseName(target)))) continue;
    const message = `the policy allows <${tag}>${target}</${tag}>, and the prompt does not mention it`;
    report.warning('unused-transition', where, message, 'Tell the agent when to take it, or remove it.');
  }
}

/** The forks of an answer must continue at the same state. */
function checkForks({ report, mentionedTags }: StateSyntax): void {
  const forks = mentionedTags.filter(({ tag }) => isFork(tag));
  const nameOf = (fork: (typeof forks)[number]): string | null => (fork.next?.kind === 'state' ? fork.next.name : null);
  const [first] = forks.flatMap((fork) => nameOf(fork) ?? []);
  for (const fork of forks) {
    const next = nameOf(fork);
    if (first === undefined || next === null || next === first) continue;
    const message = `this fork continues at ${next}, and one before it at ${first}: an answer cannot have both`;
    report.warning('other-next', fork.place, message, 'Give all forks of one answer the same next.');
  }
}
