// Parses the arguments of commands that must start fast.

import { UsageError } from '../base/errors.ts';
import { nearest } from '../base/names.ts';
import type { AgentCommandHelp } from './help.ts';

/** Switches as commander passes them to the other commands: true or absent. */
export type Switches<K extends string> = Readonly<Partial<Record<K, true>>>;

/** A run that a command is limited to, by `--run` or its older name. */
export interface RunChoice {
  readonly run?: string;
  readonly workflow?: string;
}

export interface Given {
  readonly arguments: readonly string[];
  all(flag: string): readonly string[];
  last(flag: string): string | null;
  has(flag: string): boolean;
}

/** Each flag may be repeated; a command that needs one value takes the last. */
export function readFlags(
  command: string,
  { argument, options }: Pick<AgentCommandHelp, 'argument' | 'options'>,
  args: readonly string[],
): Given {
  // `--timeout <d>` takes a value, `--json` does not.
  const known = new Map(Object.keys(options).map((flags) => [flags.replace(/^--| .*/g, ''), flags.includes('<')]));
  const expected = argument === undefined ? [] : [argument];
  const refuse = (message: string, guess: string | null = null): UsageError =>
    new UsageError(message, `${guess === null ? '' : `did you mean --${guess}? `}its flags: meow help ${command}`);
  const values = new Map<string, string[]>();
  const plain: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] ?? '';
    if (arg === '--') {
      plain.push(...args.slice(at + 1));
      break;
    }
    const [, flag, , inline] = /^--([^=]+)(=([^]*))?$/.exec(arg) ?? [];
    if (flag === undefined && arg.startsWith('-') && arg !== '-') throw refuse(`unknown option '${arg}'`);
    if (flag === undefined) {
      plain.push(arg);
      continue;
    }
    const takesValue = known.get(flag);
    if (takesValue === undefined) throw refuse(`unknown option '--${flag}'`, nearest(flag, [...known.keys()]));
    const value = inline ?? (takesValue ? args[++at] : '');
    if (value === undefined) throw refuse(`option --${flag} needs a value`);
    values.set(flag, [...(values.get(flag) ?? []), value]);
  }
  const missing = expected[plain.length];
  if (missing !== undefined) throw refuse(`missing required argument '${missing.toLowerCase()}'`);
  if (plain.length > expected.length) throw refuse(`unexpected argument '${plain[expected.length] ?? ''}'`);
  return {
    arguments: plain,
    all: (flag) => values.get(flag) ?? [],
    last: (flag) => values.get(flag)?.at(-1) ?? null,
    has: (flag) => values.has(flag),
  };
}

/** `k=v` pairs; the last one of a name wins. */
export function readPairs(flag: string, pairs: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const equals = pair.indexOf('=');
      if (equals < 1)
        throw new UsageError(`--${flag} ${JSON.stringify(pair)} is not NAME=VALUE`, `write --${flag} NAME=VALUE`);
      return [pair.slice(0, equals), pair.slice(equals + 1)];
    }),
  );
}
