// Actions of a person on a whole run. Each calls the command of the same name; the journal says what came of it. A command
// that takes long continues in the background.

import { setTimeout as sleep } from 'node:timers/promises';

import { callCommand } from '../app/call-command.ts';
import { PAUSE_SIGNAL, signalEngine } from '../app/engine-signals.ts';
import { atItsFolder } from '../app/list-workflows.ts';
import { ownEnvironment } from '../app/project.ts';
import { printedRefusal } from '../app/start-workflow.ts';
import type { NamedRun } from './named-runs.ts';
import type { Done } from './protocol.ts';
import { jsonReply, type Reply, refusalReply } from './reply.ts';

/** Commands that refuse do so at once. */
const REFUSAL_MS = 3_000;

export function stopRun(run: NamedRun, force: boolean): Promise<Reply> {
  return command(run, ['stop', run.id, ...(force ? ['--force'] : [])], `${run.id} is being stopped`);
}

/** `retry`: tries failed steps again. */
export function resumeRun(run: NamedRun, retry: boolean): Promise<Reply> {
  const flags = retry ? [] : ['--only-pending'];
  return command(run, ['resume', run.id, '--detach', ...flags], `${run.id} is being resumed`);
}

export async function pauseRun({ store, id }: NamedRun): Promise<Reply> {
  const holder = await store.holder(id);
  if (holder === null || !signalEngine(holder, PAUSE_SIGNAL))
    return refusalReply(
      409,
      `no engine works on run ${id}, so there is nothing to pause`,
      `resume it: meow resume ${id}`,
    );
  return jsonReply({ note: `${id} pauses when its running steps have finished` } satisfies Done);
}

async function command({ project }: NamedRun, args: readonly string[], note: string): Promise<Reply> {
  const called = callCommand({ args, cwd: atItsFolder(project).cwd, environment: ownEnvironment() });
  const ended = await Promise.race([called, sleep(REFUSAL_MS, null, { ref: false })]);
  if (ended === null || ended.code === 0) return jsonReply({ note } satisfies Done);
  const { message, cure } = printedRefusal(ended.stderr, `meow ${args[0]} ended with exit code ${ended.code}`);
  return refusalReply(409, message, cure);
}
