// Compares the tags that a prompt mentions with the existing states and the policy. An agent may answer differently, so
// a run starts with a warning; `meow validate` reports an error.

import type { TransitionTag } from '../../ir/tags.ts';
import { TAG_RULES } from '../../ir/machine.ts';
import type { AdapterKnowledge } from '../adapter-catalog.ts';
import type { Complain } from '../report.ts';
import { listed, suggest } from '../report.ts';
import { isAllowed } from './exits.ts';
import type { LinkedWorkflow } from './link.ts';
import { placesOfPath } from './link.ts';
import { BUILT_IN, placeholdersIn } from './placeholders.ts';
import { overriding } from './settings.ts';
import type { Named, MentionedTag, StateSyntax } from './syntax.ts';

/** `error`: for `meow validate`. `warning`: for `meow run`. */
export type Severity = 'error' | 'warning';

export function checkSaid(workflow: LinkedWorkflow, state: StateSyntax, severity: Severity): void {
  const complain = state.report[severity];
  for (const said of state.mentionedTags) {
    if (said.error !== null) {
      const message = `an agent that says this would not be understood: ${said.error}`;
      complain('malformed-tag', said.place, message, 'Write it as it must be said.');
      continue;
    }
    const named = [said.target, said.return, said.next, said.timeoutNext];
    for (const each of named) if (each?.kind === 'missing') missing(complain, workflow, said, each);
    checkParts(complain, state, said);
    // A policy that allows nothing has been reported.
    if (state.policy !== null && state.policy.allowed.length > 0 && !isAllowed(workflow, state.policy.allowed, said)) {
      const message = `the text speaks of a <${said.tag}> that the policy of ${state.name} does not allow`;
      const related = [{ message: 'the policy', place: state.policy.place }];
      complain('contradicting-policy', said.place, message, 'Change one of the two.', related);
    }
  }
}

function missing(
  complain: Complain,
  { names }: LinkedWorkflow,
  { tag, place }: MentionedTag,
  { written, message }: Extract<Named, { kind: 'missing' }>,
): void {
  const known = Object.keys(names.states);
  const hint = (): string => suggest(written, known, `States are ${listed(known)}.`);
  complain('missing-target', place, `<${tag}>: ${message}`, hint);
}

/** Required attributes, and attributes that are not allowed. */
function checkParts(complain: Complain, state: StateSyntax, { tag, attributes, next, place }: MentionedTag): void {
  const { requiredAttribute: wants, session } = TAG_RULES[tag];
  const besideGoto = state.mentionedTags.some((other) => other.tag === 'goto');
  const isFork = tag === 'fork' || tag === 'fork-workflow';
  if (wants !== null && !attributes.includes(wants) && !(isFork && next === null && besideGoto)) {
    const hint = `Write <${tag} ${wants}="NEXT.md">…</${tag}>.`;
    complain('missing-attribute', place, `<${tag}> has no "${wants}", which names the state to continue at`, hint);
  }
  if (session !== 'fresh' && attributes.includes('cd')) {
    const hint = 'Only <reset>, <function> and <fork> may change the folder.';
    complain('misplaced-attribute', place, `<${tag}> goes on in its session, which is bound to its folder`, hint);
  }
}

/** Paths that are not workflows. Paths in a policy must exist. */
export function checkPaths(workflow: LinkedWorkflow, severity: Severity): void {
  for (const [path, { message, hint }] of workflow.unknownPaths) {
    for (const { state, place, isPolicy } of placesOfPath(workflow, path)) {
      state.report[isPolicy ? 'error' : severity]('missing-workflow', place, message, hint);
    }
  }
}

/** `given`: names that the run knows. */
export function checkPlaceholders(state: StateSyntax, given: readonly string[], isRun: boolean): void {
  const { report, body } = state;
  if (body.kind !== 'prompt') return;
  const known = [...BUILT_IN, ...given];
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
export function attributesIn(workflows: readonly LinkedWorkflow[]): readonly string[] {
  const forks = workflows.flatMap(({ states }) =>
    [...states.values()].flatMap(({ mentionedTags }) =>
      mentionedTags.filter(({ tag }) => tag === 'fork' || tag === 'fork-workflow'),
    ),
  );
  return [...new Set(forks.flatMap(({ attributes }) => attributes))];
}

/** `entered`: states that a run may enter. It must not start if one of them has no usable adapter. */
export function checkAdapters(
  workflow: LinkedWorkflow,
  adapters: AdapterKnowledge,
  entered: ReadonlySet<StateSyntax>,
): void {
  const adapterOf = (state: StateSyntax): string =>
    adapters.forced ?? overriding(state.settings, workflow.settings).adapter ?? adapters.fallback;
  const refused = new Set<string>();
  for (const state of workflow.states.values()) {
    if (state.body.kind === 'script') continue;
    const adapter = adapterOf(state);
    const severity: Severity = entered.has(state) ? 'error' : 'warning';
    const refusal = refused.has(`${severity} ${adapter}`) ? null : adapters.refusal(adapter);
    if (refusal !== null) {
      refused.add(`${severity} ${adapter}`);
      state.report[severity]('adapter-unavailable', state.place, refusal.message, refusal.hint);
    }
    if (!adapters.canFork(adapter)) checkForks(state, adapter);
    for (const what of ['model', 'effort'] as const) {
      const wanted = overriding(state.settings, workflow.settings)[what];
      if (wanted === null || refusal !== null || adapters.canChoose(adapter, what)) continue;
      const message = `the adapter "${adapter}" has no way to choose ${what === 'model' ? 'a model' : 'an effort'}`;
      const hint = `Remove ${what}: ${wanted}, or give the adapter ${what}_args in its [headless].`;
      state.report.error('cannot-choose', state.place, message, hint);
    }
    if (adapters.forced === null) checkSessions(workflow, state, adapter);
  }
}

/** A call resumes a copy of its caller's session. */
function checkForks({ report, mentionedTags, policy }: StateSyntax, adapter: string): void {
  const needs = (tag: TransitionTag): boolean => TAG_RULES[tag].session === 'fork';
  for (const { tag, place } of [...mentionedTags, ...(policy?.allowed ?? [])].filter((each) => needs(each.tag))) {
    const message = `the adapter "${adapter}" cannot fork a session, which <${tag}> needs`;
    const instead = tag === 'call' ? 'function' : 'function-workflow';
    const hint =
      `Use <${instead}>, which begins a fresh one, or another adapter; ` +
      'or have a fresh session told what was said: replay = true in [headless] of the adapter.';
    report.error('cannot-fork', place, message, hint);
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
