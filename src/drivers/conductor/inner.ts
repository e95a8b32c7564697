// Effects within an effect: what a performer has done by another driver. They are known by a name of their own below the
// step, so that each is begun once in all lives of the engine, waited for while it lives, and answered with what it came to.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Driver } from '../../engine/ports.ts';
import type { CommandSpec, Effect } from '../../ir/effect.ts';
import type { FilledText } from '../../ir/text.ts';
import type { DriverContext } from '../environment.ts';
import { stepFolder } from '../step-folder.ts';

export function innerCommand(
  outer: Effect,
  name: string,
  command: Pick<CommandSpec<FilledText>, 'script' | 'cwd'>,
): Effect {
  const step = `${outer.step}.${name}`;
  const { attempt, lane } = outer;
  const plain = { env: {}, captures: [], verdict: 'success', errors: [], steering: null } as const;
  const spec: CommandSpec<FilledText> = { kind: 'command', ...plain, ...command };
  return { id: `${step}#${attempt}`, step, attempt, spec, session: { kind: 'fresh' }, lane, variables: {} };
}

/** The same driver of commands, that does not look for what cannot be there: what was ever begun has left a file. */
export function swiftToFind(driver: Driver, { files }: Pick<DriverContext, 'files'>): Driver {
  return {
    start: (effect, answer, note) => driver.start(effect, answer, note),
    find(effect, answer, note) {
      const { path } = stepFolder(files, effect.step, effect.attempt);
      if (existsSync(join(path, 'stdout'))) driver.find(effect, answer, note);
      else driver.start(effect, answer, note);
    },
    stop: (effectId, how) => driver.stop(effectId, how),
  };
}
