// `meow run --dry-run`: what would be run, without a trace. The steps that a run begins with come first; behind them, each
// under the name of its workflow, those that steps may lead to.

import { formatDuration } from '../../base/time.ts';
import type { Target } from '../../ir/transition.ts';
import { blocksOf, blocksOfTarget } from '../../ir/transition.ts';
import type { Block, Each, Program, RunRequest, Step } from '../../ir/program.ts';
import type { Text } from '../../ir/text.ts';
import { shownVariables } from '../../view/status.ts';
import { durationText } from '../../view/step-lines.ts';
import { EXIT } from '../exit.ts';
import { say } from '../output.ts';
import { writtenText } from '../../ir/text.ts';

export function dryRun(program: Program, request: RunRequest, json: boolean): number {
  const first = (block: Block): number => (block.name === program.entry ? 0 : 1);
  const blocks = Object.values(program.blocks).toSorted((a, b) => first(a) - first(b));
  const variables = shownVariables(request.variables);
  const steps = blocks.flatMap((block) => block.steps.map((step) => ({ block, step })));
  if (json) {
    const { language, name } = program.source;
    const described = steps.map(({ block, step }) => ({
      id: step.id,
      executor: step.executor,
      needs: step.needs,
      workflow: block.name,
      leads_to: leadsTo(step),
    }));
    say(JSON.stringify({ kind: 'dry-run', language, source: name, vars: variables, steps: described }, null, 2));
    return EXIT.done;
  }
  say(`${program.source.name}: ${steps.length} ${steps.length === 1 ? 'step' : 'steps'}; nothing was started`);
  for (const [name, value] of Object.entries(variables)) say(`  ${name} = ${JSON.stringify(value)}`);
  for (const block of blocks) sayBlock(block, block.name === program.entry);
  return EXIT.done;
}

function sayBlock({ name, steps }: Block, isEntry: boolean): void {
  if (!isEntry) say(`\n${name}:`);
  for (const step of steps) {
    say();
    for (const line of describe(step)) say(isEntry ? line : `  ${line}`);
  }
}

function describe(step: Step): readonly string[] {
  const below = leadsTo(step);
  const notes = [
    step.executor,
    ...aboutAgent(step),
    ...(step.needs.length === 0 ? [] : [`needs ${step.needs.join(', ')}`]),
    ...(step.timeout === null ? [] : [`timeout ${durationText(writtenText(step.timeout))}`]),
    ...(step.retry.attemptsMax > 1
      ? [`up to ${step.retry.attemptsMax} attempts, ${formatDuration(step.retry.delayMs)} apart`]
      : []),
    ...(step.onError.kind === 'fail' ? [] : [`on error: ${step.onError.kind}`]),
    ...(below.length === 0 ? [] : [`leads to ${someOf(below)}`]),
  ];
  return [`${step.id}  (${notes.join('; ')})`, ...textOf(step).map((line) => `    ${line}`)];
}

function someOf(names: readonly string[]): string {
  const more = names.length - NAMES_MAX;
  return more <= 0 ? names.join(', ') : `${names.slice(0, NAMES_MAX).join(', ')} and ${more} more`;
}

const NAMES_MAX = 8;

function aboutAgent({ act }: Step): readonly string[] {
  if (act.kind !== 'effect') return [];
  switch (act.effect.kind) {
    case 'spawn':
      return [`agent ${writtenText(act.effect.agent)}, adapter ${writtenText(act.effect.adapter)}`];
    case 'prompt':
    case 'kill':
      return [`agent ${writtenText(act.effect.agent)}`];
    default:
      return [];
  }
}

/** Names of the blocks that a step may bring in, each once. */
function leadsTo({ act, routes, onError }: Step): readonly string[] {
  const targets: Target[] = [];
  if (act.kind === 'each') targets.push(act.target);
  if (onError.kind === 'recover') targets.push(onError.target);
  return [...new Set([...Object.values(routes).flatMap(blocksOf), ...targets.flatMap(blocksOfTarget)])];
}

/** The script, the prompt or the list. */
function textOf({ act }: Step): readonly string[] {
  if (act.kind === 'each') return [`for each of ${itemsText(act.items)}`];
  if (act.kind !== 'effect') return [];
  const text: Text | null =
    act.effect.kind === 'command' ? act.effect.script : act.effect.kind === 'prompt' ? act.effect.prompt : null;
  return text === null ? [] : writtenText(text).trimEnd().split('\n');
}

function itemsText(items: Each['items']): string {
  if (items.kind === 'file') return writtenText(items.path);
  const { value } = items;
  if (value.kind === 'text') return writtenText(value.text);
  return value.kind === 'literal' ? JSON.stringify(value.value) : 'a list';
}
