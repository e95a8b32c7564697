// Starts commands from a small process beside the engine. Node starts a process by copying itself, which takes the
// engine's only thread a millisecond or two; a small process does it for less, on another core. Used where commands are
// many, and only where there is a perl; everything works without it (process.ts).
//
// L1  What is asked for is started at most once, and every process leads a session of its own, as in process.ts.
// L2  The launcher outlives no engine: it ends when its input does. What it has started goes on.
// L3  When the launcher is gone, or says what cannot be understood, it is ended; those who waited for it are told, and
//     look for their processes themselves.
//
// A command is its program and its arguments. A child that cannot become it writes its own line beside its parent's: each
// write is of whole lines and so short that the system does not divide it.

import { findPerl, PerlStarter } from '../spawner.ts';
import type { LaunchEvents } from '../spawner.ts';
import type { ProcessRequest } from '../process.ts';

export class Launcher extends PerlStarter {
  #base: { readonly of: Readonly<Record<string, string>>; readonly lacking: readonly string[] };

  constructor(perl: string, environment: Readonly<Record<string, string>>) {
    super(perl, { own: OWN, outlives: false }, environment);
    this.#base = { of: this.environment, lacking: [] };
  }

  start(request: ProcessRequest, events: LaunchEvents): void {
    this.request(() => this.#fields(request), events);
  }

  /** As `start`, but for the last step, which is taken when what is returned is called. Null where another waits for that. */
  prepare(request: ProcessRequest, events: LaunchEvents): (() => void) | null {
    return this.hold(() => this.#fields(request), events);
  }

  #fields({ cwd, folder, path, args, environment }: ProcessRequest): readonly string[] {
    const { base } = environment;
    // The base is one and the same for many.
    if (base !== this.#base.of) {
      const lacking = Object.entries(base).filter(([name, value]) => this.environment[name] !== value);
      this.#base = { of: base, lacking: lacking.flat() };
    }
    const own = [...this.#base.lacking, ...Object.entries(environment.own).flat()];
    return [cwd, folder, String(args.length + 1), path, ...args, '0', ...own];
  }
}

/** Null where there is none that could be used. */
export function findLauncher(environment: Readonly<Record<string, string>>): Launcher | null {
  const perl = findPerl(environment);
  return perl === null ? null : new Launcher(perl, environment);
}

const OWN = String.raw`
sub is_ready {
  my ($folder, $cwd) = @_;
  return folder($folder) && lead("$folder/stdout", $append, 1) && lead("$folder/stderr", $append, 2) && chdir($cwd);
}
sub become {
  my ($id, $folder, $cwd, $command) = @_;
  { no warnings; exec { $command->[0] } @$command; }
  refuse($id);
}
sub can_spare { return 0 }
sub ended {}
`;
