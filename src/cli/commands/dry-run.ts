// `meow run --dry-run`: what would be run, without a trace.

import { formatDuration } from '../../base/time.ts';
import type { Program, RunRequest, Step } from '../../ir/program.ts';
import { writtenText } from '../../view/status.ts';
import { durationText } from '../../view/step.ts';
import { EXIT } from '../exit.ts';
import { say } from '../say.ts';

export function dryRun(program: Program, request: RunRequest, json: boolean): number {
  const steps = Object.values(program.blocks).flatMap((block) => block.steps);
  if (json) {
    const { language, name } = program.source;
    const described = steps.map((step) => ({ id: step.id, executor: step.executor, needs: step.needs }));
    say(
      JSON.stringify({ kind: 'dry-run', language, source: name, vars: request.variables, steps: described }, null, 2),
    );
    return EXIT.done;
  }
  say(`${program.source.name}: ${steps.length} ${steps.length === 1 ? 'step' : 'steps'}; nothing was started`);
  for (const [name, value] of Object.entries(request.variables)) say(`  ${name} = ${JSON.stringify(value)}`);
  for (const step of steps) {
    say();
    for (const line of describe(step)) say(line);
  }
  return EXIT.done;
}

function describe(step: Step): readonly string[] {
  const notes = [
    step.executor,
    ...(step.needs.length === 0 ? [] : [`needs ${step.needs.join(', ')}`]),
    ...(step.timeout === null ? [] : [`timeout ${durationText(writtenText(step.timeout))}`]),
    ...(step.retry.attemptsMax > 1
      ? [`up to ${step.retry.attemptsMax} attempts, ${formatDuration(step.retry.delayMs)} apart`]
      : []),
    ...(step.onError.kind === 'fail' ? [] : [`on error: ${step.onError.kind}`]),
  ];
  return [`${step.id}  (${notes.join('; ')})`, ...scriptOf(step).map((line) => `    ${line}`)];
}

function scriptOf({ act }: Step): readonly string[] {
  if (act.kind !== 'effect' || act.effect.kind !== 'command') return [];
  return writtenText(act.effect.script).trimEnd().split('\n');
}
