// Commands with a reduced environment (`inherit`) or a limit of silence (`idleMs`), beside all others.
//
// limited-commands/1  The reason is recorded (`silent` in the folder of the attempt) before the signal is sent, so that
//                     a later engine reports the same.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { formatDuration } from '../../base/time.ts';
import type { Answer, Driver } from '../../engine/ports.ts';
import type { CommandSpec, Effect } from '../../ir/effect.ts';
import { makeFolder, writePrivate } from '../../sys/private-file.ts';
import type { DriverContext } from '../environment.ts';
import { stepFolder } from '../step-folder.ts';
import { commandDriver } from './command-driver.ts';
import type { CommandDriverOptions } from './command-driver.ts';
import { IdleLimit } from './idle-limit.ts';

export function limitedCommands(options: CommandDriverOptions): Driver {
  const plain = commandDriver(options);
  /** By the names of inherited variables. */
  const sealed = new Map<string, Driver>();
  const driverFor = ({ inherit }: Limits): Driver => {
    if (inherit === undefined) return plain;
    const key = inherit.join(' ');
    const known = sealed.get(key) ?? commandDriver({ ...options, ...onlyWith(inherit, options) });
    sealed.set(key, known);
    return known;
  };
  const ask = (how: 'start' | 'find', effect: Effect, answer: Answer): void => {
    const limits = limitsOf(effect);
    const driver = driverFor(limits);
    driver[how](effect, limits.idleMs === undefined ? answer : watched(driver, effect, limits.idleMs, answer));
  };
  const watched = (driver: Driver, effect: Effect, idleMs: number, answer: Answer): Answer => {
    const { path } = stepFolder(options.files, effect.step, effect.attempt);
    const file = join(path, 'silent');
    const end = (): void => {
      if (!existsSync(file)) {
        makeFolder(path);
        writePrivate(file, '');
      }
      driver.stop(effect.id, { force: false, why: 'timeout' });
    };
    const limit = new IdleLimit({ idleMs, files: [join(path, 'stdout'), join(path, 'stderr')], reached: end });
    // An earlier engine may not have finished killing it.
    if (existsSync(file)) setImmediate(end);
    return (outcome) => {
      limit.close();
      const isEnded = outcome.kind === 'failure' && CUT_OFF.has(outcome.failure.kind) && existsSync(file);
      if (!isEnded) return answer(outcome);
      const { failure } = outcome;
      const at = failure.message.indexOf('; ');
      const left = at === -1 ? '' : failure.message.slice(at);
      const message = `it was silent for ${formatDuration(idleMs)}${left}`;
      answer({ kind: 'failure', failure: { ...failure, kind: 'idle', message } });
    };
  };
  return {
    start: (effect, answer) => ask('start', effect, answer),
    find: (effect, answer) => ask('find', effect, answer),
    prepare(effect) {
      const { idleMs, inherit } = limitsOf(effect);
      if (idleMs === undefined && inherit === undefined) plain.prepare?.(effect);
    },
    stop(effectId, how) {
      for (const driver of [plain, ...sealed.values()]) driver.stop(effectId, how);
    },
  };
}

type Limits = Pick<CommandSpec<unknown>, 'idleMs' | 'inherit'>;

const CUT_OFF: ReadonlySet<string> = new Set(['stopped', 'lost', 'signal']);

function limitsOf({ spec }: Effect): Limits {
  return spec.kind === 'command' ? spec : {};
}

function onlyWith(
  names: readonly string[],
  { environment }: DriverContext,
): Pick<DriverContext, 'environment' | 'binFolder'> {
  const seen = names.flatMap((name) => {
    const value = Object.hasOwn(environment, name) ? environment[name] : undefined;
    return value === undefined ? [] : [[name, value] as const];
  });
  return { environment: Object.fromEntries(seen), binFolder: null };
}
