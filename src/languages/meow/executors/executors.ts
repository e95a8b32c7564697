// Every executor that MEOW knows, by name.

import { agent } from './agent.ts';
import { branch } from './branch.ts';
import type { Executor } from './executor.ts';
import { expand } from './expand.ts';
import { foreach } from './foreach.ts';
import { kill } from './kill.ts';
import { shell } from './shell.ts';
import { spawn } from './spawn.ts';

const EXECUTORS: readonly Executor[] = [agent, branch, expand, foreach, kill, shell, spawn];

export const EXECUTOR_NAMES: readonly string[] = EXECUTORS.map(({ name }) => name);

export function findExecutor(name: string): Executor | null {
  return EXECUTORS.find((executor) => executor.name === name) ?? null;
}
