// Compares the tags that a prompt mentions with the existing states and the policy. An agent may answer differently, so
// a run starts with a warning; `meow validate` reports an error. Also warns of prompts that leave their agent to guess,
// and of forks that cannot be followed.

import { hasErrors } from '../../base/source.ts';
import { TAG_RULES } from '../../ir/machine.ts';
import { isFork } from '../../ir/tags.ts';
import type { AdapterKnowledge } from '../adapter-catalog.ts';
import { baseName } from '../language.ts';
import { type Complain, listed, suggest } from '../report.ts';
import { isAllowed, PARTS } from './exits.ts';
import { type LinkedWorkflow, pathsIn } from './link.ts';
import { statesHint, stemOf } from './names.ts';
import { BUILT_IN, placeholdersIn } from './placeholders.ts';
import { overriding } from './settings.ts';
import { type MentionedTag, type Named, type StateSyntax } from './syntax.ts';

/** `error`: for `meow validate`. `warning`: for `meow run`. */
type Severity = 'error' | 'warning';

/** `given`: names that the run knows; null: nothing will run, all states are checked. `reached`: reachable states. */
export function checkTexts(
  workflows: readonly LinkedWorkflow[],
  adapters: AdapterKnowledge,
  given: readonly string[] | null,
  reached: ReadonlySet<StateSyntax>,
): void {
  const isRun = given !== null;
  const severity = isRun ? 'warning' : 'error';
  const known = [...BUILT_IN, ...(given ?? []), ...attributesIn(workflows)];
  for (const workflow of workflows) {
    checkPaths(workflow, severity);
    checkAdapters(workflow, adapters, reached, isRun);
    for (const state of workflow.states.values()) {
      if (isRun && !reached.has(state)) continue;
      checkMentioned(workflow, state, severity);
      checkPlaceholders(state, known, isRun);
    }
  }
}

function checkMentioned(workflow: LinkedWorkflow, state: StateSyntax, severity: Severity): void {
  const complain = state.report[severity];
  for (const mention of state.mentionedTags) {
    if (mention.error !== null) {
      const message = `meow would not understand an agent that writes this: ${mention.error}`;
      complain('malformed-tag', mention.place, message, 'Write the tag exactly as the agent must write it.');
      continue;
    }
    for (const named of PARTS.map((part) => mention[part])) {
      if (named?.kind !== 'missing') continue;
      const hint = (): string => statesHint(workflow.names, named.written);
      complain('missing-target', mention.place, `<${mention.tag}>: ${named.message}`, hint);
    }
    checkParts(complain, state, mention);
    checkAttributes(state, mention);
    // A policy that allows nothing has been reported.
    if (
      state.policy !== null &&
      state.policy.allowed.length > 0 &&
      !isAllowed(workflow, state.policy.allowed, mention)
    ) {
      const message = `the text mentions a <${mention.tag}> that the policy of ${state.name} does not allow`;
      const related = [{ message: 'the policy', place: state.policy.place }];
      complain('contradicting-policy', mention.place, message, 'Change one of the two.', related);
    }
  }
}

/** Required attributes, and attributes that are not allowed. */
function checkParts(complain: Complain, state: StateSyntax, { tag, attributes, next, place }: MentionedTag): void {
  const { requiredAttribute: wants, session } = TAG_RULES[tag];
  const besideGoto = state.mentionedTags.some((other) => other.tag === 'goto');
  if (wants !== null && !attributes.includes(wants) && !(isFork(tag) && next === null && besideGoto)) {
    const hint = `Write <${tag} ${wants}="NEXT.md">…</${tag}>.`;
    complain('missing-attribute', place, `<${tag}> has no "${wants}", which names the state to continue at`, hint);
  }
  if (session !== 'fresh' && attributes.includes('cd')) {
    const hint = 'Only <reset>, <function> and <fork> may change the folder.';
    complain('misplaced-attribute', place, `<${tag}> goes on in its session, which is bound to its folder`, hint);
  }
}

/** A fork passes all other attributes to its worker. */
function checkAttributes({ report }: StateSyntax, { tag, attributes, place }: MentionedTag): void {
  if (isFork(tag)) return;
  const known = attributesOf(tag);
  const isReportedElsewhere = (name: string): boolean => name === 'cd' || (name === 'adapter' && known.length > 0);
  for (const unknown of attributes.filter((each) => !known.includes(each) && !isReportedElsewhere(each))) {
    const all = known.length === 0 ? `It has none: <${tag}>…</${tag}>.` : `It may have ${listed(known)}.`;
    const hint = (): string => suggest(unknown, known, all);
    report.warning('unknown-attribute', place, `<${tag}> has no attribute "${unknown}"`, hint);
  }
}

function attributesOf(tag: MentionedTag['tag']): readonly string[] {
  const { requiredAttribute, session, target } = TAG_RULES[tag];
  return [
    ...(requiredAttribute === null ? [] : [requiredAttribute]),
    ...(tag === 'ask' ? ['timeout', 'timeout_next', 'approver'] : []),
    ...(target === 'back' ? [] : ['input', 'model', 'effort']),
    ...(target !== 'back' && session === 'fresh' ? ['cd', 'adapter'] : []),
  ];
}

/** Paths that are not workflows. Paths in a policy must exist. */
function checkPaths(workflow: LinkedWorkflow, severity: Severity): void {
  for (const [unknown, { message, hint }] of workflow.unknownPaths) {
    for (const { path, state, place, isPolicy } of pathsIn(workflow)) {
      if (path === unknown) state.report[isPolicy ? 'error' : severity]('missing-workflow', place, message, hint);
    }
  }
}

function checkPlaceholders({ report, body }: StateSyntax, known: readonly string[], isRun: boolean): void {
  if (body.kind !== 'prompt') return;
  for (const { path, from, to } of placeholdersIn(body.text)) {
    const [name = ''] = path;
    if (known.includes(name)) continue;
    const cure = `Pass it with --var ${name}=VALUE or as an attribute of a fork; for literal braces, write {{{{.`;
    const fate = isRun ? 'the state will fail' : 'unless the run sets it, the state will fail';
    const message = `nothing says what {{${path.join('.')}}} is: ${fate}`;
    report.warning('unknown-placeholder', body.placeOf(from, to), message, () => suggest(name, known, cure));
  }
}

/** Names of attributes that texts pass to workers. */
function attributesIn(workflows: readonly LinkedWorkflow[]): readonly string[] {
  const tags = workflows.flatMap(({ states }) => [...states.values()].flatMap(({ mentionedTags }) => mentionedTags));
  return [...new Set(tags.flatMap(({ tag, attributes }) => (isFork(tag) ? attributes : [])))];
}

/**
 * A run must not start if a state that it may enter has no usable adapter. A check may run on a machine without the
 * adapter. What an adapter cannot do is an error of every reachable state.
 */
function checkAdapters(
  workflow: LinkedWorkflow,
  adapters: AdapterKnowledge,
  reached: ReadonlySet<StateSyntax>,
  isRun: boolean,
): void {
  const refused = new Set<string>();
  for (const state of workflow.states.values()) {
    if (state.body.kind === 'script') continue;
    const settings = overriding(state.settings, workflow.settings);
    const adapter = adapters.forced ?? settings.adapter ?? adapters.fallback;
    const fault: Severity = reached.has(state) ? 'error' : 'warning';
    const severity: Severity = isRun ? fault : 'warning';
    const refusal = refused.has(`${severity} ${adapter}`) ? null : adapters.refusal(adapter);
    if (refusal !== null) {
      refused.add(`${severity} ${adapter}`);
      state.report[severity]('adapter-unavailable', state.place, refusal.message, refusal.hint);
    }
    if (!adapters.canFork(adapter)) checkSessionForks(state, adapter, fault);
    for (const what of ['model', 'effort'] as const) {
      const wanted = settings[what];
      if (wanted === null || refusal !== null || adapters.canChoose(adapter, what)) continue;
      const message = `the adapter "${adapter}" has no way to choose ${what === 'model' ? 'a model' : 'an effort'}`;
      const hint = `Remove ${what}: ${wanted}, or give the adapter ${what}_args in its [headless].`;
      state.report[fault]('cannot-choose', state.place, message, hint);
    }
    if (adapters.forced === null) checkSessions(workflow, state, adapter);
  }
}

/** A call resumes a copy of its caller's session. */
function checkSessionForks({ report, mentionedTags, policy }: StateSyntax, adapter: string, fault: Severity): void {
  for (const { tag, place } of [...mentionedTags, ...(policy?.allowed ?? [])]) {
    if (TAG_RULES[tag].session !== 'fork') continue;
    const message = `the adapter "${adapter}" cannot fork a session, which <${tag}> needs`;
    const instead = tag === 'call' ? 'function' : 'function-workflow';
    const hint =
      `Use <${instead}>, which begins a fresh one, or another adapter; ` +
      'or have a fresh session told what was said: replay = true in [headless] of the adapter.';
    report[fault]('cannot-fork', place, message, hint);
  }
}

/** A session belongs to its adapter. */
function checkSessions(workflow: LinkedWorkflow, { report, mentionedTags }: StateSyntax, adapter: string): void {
  const wantedBy = (named: Named | null): string | null =>
    named?.kind === 'state' ? (workflow.states.get(named.name)?.settings.adapter ?? null) : null;
  for (const { tag, target, return: back, next, place } of mentionedTags) {
    const goesOn = TAG_RULES[tag].session === 'fresh' ? [back, next] : [target, back, next];
    const other = goesOn.map(wantedBy).find((wanted) => wanted !== null && wanted !== adapter);
    if (other === undefined || other === null) continue;
    const message = `<${tag}> goes on in a session of "${adapter}", and the state it leads to asks for "${other}"`;
    report.warning('other-adapter', place, message, 'Begin a fresh session there, with <reset> or <function>.');
  }
}

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
