// Starts commands from a small process beside the engine. Node starts a process by copying itself, which takes the
// engine's only thread a millisecond or two; a small process does it for less, on another core, and beforehand: while
// nothing is asked of it, it has a *spare* ready, a shell like that of the command before, which only has to be told its
// script (spare-shell.ts). Used where commands are many, and only where there is a perl; everything works without it
// (process.ts).
//
// L1  What is asked for is started at most once, and every process leads a session of its own, as in process.ts.
// L2  The launcher outlives no engine: it ends when its input does. What it has started goes on.
// L3  When the launcher is gone, or says what cannot be understood, it is ended; those who waited for it are told, and
//     look for their processes themselves.
//
// A command is its program and its arguments. A child that cannot become it writes its own line beside its parent's: each
// write is of whole lines and so short that the system does not divide it.

import { MARKER, markerOfSpares } from '../environment.ts';
import { F_DUPFD } from '../spawner-script.ts';
import { findPerl, PerlStarter } from '../spawner.ts';
import type { LaunchEvents } from '../spawner.ts';
import type { ProcessRequest } from '../process.ts';
import { GO_AHEAD, ordersFor, REPORTS } from './spare-shell.ts';
import { NOT_BEGUN } from '../recording-shell.ts';

export class Launcher extends PerlStarter {
  #base: { readonly of: Readonly<Record<string, string>>; readonly lacking: readonly string[] };

  constructor(perl: string, environment: Readonly<Record<string, string>>) {
    super(perl, { own: OWN, outlives: false }, environment);
    this.#base = { of: this.environment, lacking: [] };
  }

  start(request: ProcessRequest, events: LaunchEvents): void {
    this.request(() => this.#fields(request, null), events);
  }

  /** As `start`, but for the last step, which is taken when what is returned is called. Null where another waits for that. */
  prepare(request: ProcessRequest, events: LaunchEvents): (() => void) | null {
    return this.hold((id) => this.#fields(request, id), events);
  }

  /** `held`: the id of one that is held, which a spare may become. */
  #fields(request: ProcessRequest, held: string | null): readonly string[] {
    const { cwd, folder, path, args, environment } = request;
    const { base } = environment;
    // The base is one and the same for many.
    if (base !== this.#base.of) {
      const lacking = Object.entries(base).filter(([name, value]) => this.environment[name] !== value);
      this.#base = { of: base, lacking: lacking.flat() };
    }
    const own = [...this.#base.lacking, ...Object.entries(environment.own).flat()];
    const orders = held === null ? null : ordersFor(request, own, held);
    const marker = markerOfSpares(environment.own[MARKER] ?? '');
    const spare = orders === null ? ['', ''] : [[path, orders.name, cwd, marker].join('\n'), orders.text];
    return [cwd, folder, ...spare, String(args.length + 1), path, ...args, '0', ...own];
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
my $kind = '';
sub can_spare { return $kind ne '' }
sub be_spare {
  my ($orders) = @_;
  my ($path, $name, $cwd, $marker) = split /\n/, $kind;
  # First out of the way of the numbers that they are to have.
  my @given = map { fcntl($_, ${F_DUPFD}, 10) } $orders, $report, $ahead;
  my @as = (0, ${REPORTS}, ${GO_AHEAD});
  POSIX::dup2($given[$_], $as[$_]) for 0 .. 2;
  POSIX::close($_) for @given;
  $ENV{${MARKER}} = $marker;
  no warnings;
  # As with -c alone, it catches SIGINT; and then it reads its stdin.
  exec { $path } $name, '-s', '-c', ':', $name if chdir($cwd);
  POSIX::_exit(${NOT_BEGUN});
}
sub orders {
  my ($id, $when, $cwd, $folder, $like, $told) = split /\0/, $_[0], 7;
  return undef if $told eq '';
  if ($like ne $kind) {
    $kind = $like;
    undef $spare;
  }
  return $spare && folder($folder) ? $told : undef;
}
sub ended {}
`;
