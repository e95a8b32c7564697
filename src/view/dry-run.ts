// What `meow run --dry-run` shows: the steps that the run begins with, then those of the other workflows that steps may
// enter.

import { formatDuration } from '../base/time.ts';
import { blocksOf, blocksOfTarget } from '../ir/transition.ts';
import { type Block, type Loop, type Program, type RunRequest, type Step, targetsOfAct } from '../ir/program.ts';
import { type ValueTemplate, writtenText } from '../ir/text.ts';
import { counted } from './row.ts';
import { shownVariables } from './status.ts';
import { durationText } from './step-lines.ts';

export function dryRunJson(program: Program, { variables }: RunRequest): object {
  const { language, name } = program.source;
  const steps = blocksInOrder(program).flatMap((block) =>
    block.steps.map((step) => ({
      id: step.id,
      executor: step.executor,
      needs: step.needs,
      workflow: block.name,
      leads_to: leadsTo(step),
    })),
  );
  return { kind: 'dry-run', language, source: name, vars: shownVariables(variables), steps };
}

export function dryRunLines(program: Program, { variables }: RunRequest): readonly string[] {
  const blocks = blocksInOrder(program);
  const count = blocks.reduce((sum, { steps }) => sum + steps.length, 0);
  return [
    `${program.source.name}: ${counted(count, 'step')}; nothing was started`,
    ...Object.entries(shownVariables(variables)).map(([name, value]) => `  ${name} = ${JSON.stringify(value)}`),
    ...blocks.flatMap((block) => blockLines(block, block.name === program.entry)),
  ];
}

/** The entry block first. Blocks that perform a step are folded into it. */
function blocksInOrder({ blocks, entry }: Program): readonly Block[] {
  const all = Object.values(blocks);
  const acts = all.flatMap(({ steps }) => steps.map(({ act }) => act));
  const bodies = new Set(acts.flatMap((act) => (act.kind === 'block' ? blocksOfTarget(act.target) : [])));
  const rank = ({ name }: Block): number => (name === entry ? 0 : 1);
  return all.filter(({ name }) => !bodies.has(name)).toSorted((a, b) => rank(a) - rank(b));
}

function blockLines({ name, steps }: Block, isEntry: boolean): readonly string[] {
  const lines = steps.flatMap((step) => ['', ...describe(step).map((line) => (isEntry ? line : `  ${line}`))]);
  return isEntry ? lines : ['', `${name}:`, ...lines];
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
    ...(below.length === 0 ? [] : [`may enter ${someOf(below)}`]),
  ];
  return [`${step.id}  (${notes.join('; ')})`, ...textOf(step).map((line) => `    ${line}`)];
}

function someOf(names: readonly string[]): string {
  const more = names.length - NAMES_MAX;
  return more <= 0 ? names.join(', ') : `${names.slice(0, NAMES_MAX).join(', ')} and ${more} more`;
}

const NAMES_MAX = 8;

function aboutAgent({ act }: Step): readonly string[] {
  if (act.kind !== 'effect' || !('agent' in act.effect)) return [];
  const adapter = act.effect.kind === 'spawn' ? `, adapter ${writtenText(act.effect.adapter)}` : '';
  return [`agent ${writtenText(act.effect.agent)}${adapter}`];
}

/** Names of the blocks that a step may enter, each once. */
function leadsTo({ act, routes, onError }: Step): readonly string[] {
  // A block that performs a step is folded into it.
  const below = act.kind === 'block' ? [] : targetsOfAct(act).flatMap(blocksOfTarget);
  const recovery = onError.kind === 'recover' ? blocksOfTarget(onError.target) : [];
  return [...new Set([...Object.values(routes).flatMap(blocksOf), ...below, ...recovery])];
}

/** The script, the prompt or the list. */
function textOf({ act }: Step): readonly string[] {
  if (act.kind === 'each') {
    const { items } = act;
    return [`for each of ${items.kind === 'file' ? writtenText(items.path) : valueText(items.value)}`];
  }
  if (act.kind === 'loop') return [loopText(act)];
  if (act.kind !== 'effect') return [];
  const { effect } = act;
  const text = effect.kind === 'command' ? effect.script : effect.kind === 'prompt' ? effect.prompt : null;
  return text === null ? [] : writtenText(text).trimEnd().split('\n');
}

function loopText({ roundsMax, delayMs, check }: Loop): string {
  const apart = delayMs === 0 ? '' : `, ${formatDuration(delayMs)} apart`;
  const until = check.kind === 'output' ? `, until ${check.step}.outputs.${check.path.join('.')}` : '';
  return `at most ${valueText(roundsMax)} rounds${apart}${until}`;
}

function valueText(value: ValueTemplate): string {
  if (value.kind === 'text') return writtenText(value.text);
  return value.kind === 'literal' ? JSON.stringify(value.value) : 'a list';
}
