// Lowers a block from syntax to IR.

import type { CommandSpec } from '../../ir/effect.ts';
import type { Block, Parameter, Program } from '../../ir/program.ts';
import type { Text } from '../../ir/text.ts';
import type { TomlString } from '../toml-tree.ts';
import type { Scope } from './scope.ts';
import { STEP_BUILTINS, WORKFLOW_BUILTINS } from './scope.ts';
import { lowerStep } from './step.ts';
import type { CallerScopes } from './caller-scope.ts';
import type { BlockSyntax, VariableSyntax } from './syntax.ts';
import { lowerDefault, lowerScript } from './text.ts';

/** Parts of the scope that all texts of a block share. */
export type Setting = Pick<Scope, 'passed' | 'adapter' | 'links' | 'onUse'>;

export function lowerBlock(block: BlockSyntax, sight: CallerScopes, setting: Setting): Block {
  const order = sight.orderOf(block);
  const base = scopeOf(block, sight, setting);
  const steps = block.steps.flatMap((step) => {
    const isFinished = (id: string): boolean => order.isBefore(id, step);
    return lowerStep({ ...base, builtins: STEP_BUILTINS, step, isFinished }, step) ?? [];
  });
  return { name: block.name, parameters: lowerParameters(base, block.variables), steps, naming: 'path', visits: null };
}

export function lowerCleanups(block: BlockSyntax, sight: CallerScopes, setting: Setting): Program['cleanup'] {
  const base = scopeOf(block, sight, setting);
  const { success, failure, stop } = block.workflow.cleanup;
  return {
    success: lowerCleanup({ ...base, isFinished: () => true }, success),
    failure: lowerCleanup(base, failure),
    stop: lowerCleanup(base, stop),
  };
}

function scopeOf(block: BlockSyntax, sight: CallerScopes, setting: Setting): Scope {
  const { report, workflow, variables, steps } = block;
  return {
    ...setting,
    report,
    workflow,
    variables: new Set(variables.map(({ name }) => name)),
    declared: variables,
    builtins: WORKFLOW_BUILTINS,
    steps: new Map(steps.map((step) => [step.id, step])),
    step: null,
    isFinished: () => false,
    ownOutputs: false,
    around: sight.around(block),
  };
}

/** A default sees earlier variables: they get their values in order of declaration. */
function lowerParameters(scope: Scope, variables: readonly VariableSyntax[]): readonly Parameter[] {
  const before = new Set<string>();
  return variables.map(({ name, type, required, fallback, description }) => {
    const lowered: Parameter['fallback'] =
      fallback?.kind === 'text' ? { kind: 'text', text: lowerDefault(scope, before, fallback.text) } : fallback;
    before.add(name);
    return { name, type, required, fallback: lowered, description };
  });
}

function lowerCleanup(scope: Scope, script: TomlString | null): CommandSpec<Text> | null {
  if (script === null) return null;
  const lowered = lowerScript(scope, script);
  return {
    kind: 'command',
    script: lowered,
    cwd: null,
    env: {},
    captures: [],
    verdict: 'success',
    errors: [],
    steering: null,
  };
}
