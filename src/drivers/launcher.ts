// Starts commands from a small process beside the engine. Node starts a process by copying itself, which takes the
// engine's only thread a millisecond or two; a small process does it for less, on another core, and beforehand: while
// nothing is asked of it, it has a *spare* ready, a copy of itself that only has to be told what to become. Used where
// commands are many, and only where there is a perl; everything works without it (process.ts).
//
// L1  What is asked for is started at most once, and every process leads a session of its own, as in process.ts.
// L2  The launcher outlives no engine: it ends when its input does. What it has started goes on.
// L3  When the launcher is gone, or says what cannot be understood, it is ended; those who waited for it are told, and
//     look for their processes themselves.
//
// A request (perl-starter.ts) is: id, when, cwd, step folder, number of arguments, arguments, and the environment's names and
// values where they differ from the launcher's own. A child that cannot become its command writes its own line beside its parent's:
// each write is of whole lines and so short that the system does not divide it.

import { availableParallelism } from 'node:os';
import { findPerl, OPENING, PerlStarter, WRITE_MAX } from './perl-starter.ts';
import type { LaunchEvents } from './perl-starter.ts';
import type { ProcessRequest } from './process.ts';

export class Launcher extends PerlStarter {
  #base: { readonly of: Readonly<Record<string, string>>; readonly lacking: readonly string[] };

  constructor(perl: string, environment: Readonly<Record<string, string>>) {
    super(perl, SCRIPT, environment);
    this.#base = { of: this.environment, lacking: [] };
  }

  start(request: ProcessRequest, events: LaunchEvents): void {
    this.request(this.#fields(request), events);
  }

  /** As `start`, but for the last step, which is taken when what is returned is called. Null where another waits for that. */
  prepare(request: ProcessRequest, events: LaunchEvents): (() => void) | null {
    return this.hold(this.#fields(request), events);
  }

  #fields({ cwd, folder, path, args, environment: { base, own } }: ProcessRequest): readonly string[] {
    // The base is one and the same for many.
    if (base !== this.#base.of) {
      const lacking = Object.entries(base).filter(([name, value]) => this.environment[name] !== value);
      this.#base = { of: base, lacking: lacking.flat() };
    }
    return [cwd, folder, String(args.length + 1), path, ...args, ...this.#base.lacking, ...Object.entries(own).flat()];
  }
}

/** Null where there is none that could be used. */
export function findLauncher(environment: Readonly<Record<string, string>>): Launcher | null {
  const perl = findPerl(environment);
  return perl === null ? null : new Launcher(perl, environment);
}

/** With more than these at work a spare only takes their time. */
const BUSY = availableParallelism();

/**
 * An end is told at once, unless there is something to begin; a beginning when the next spare is made: whoever runs for less
 * than that costs the engine one turn, not two.
 *
 * A spare rehearses what will be asked of it, by the example of an earlier command: the memory that a process touches first
 * after a fork is copied then, and not when somebody waits. While a command is held no other spare is made, which would
 * take the processor that it waits for; the engine says when it has begun.
 *
 * Where many are asked for together there is no time for spares. Then everything that a command needs is made ready
 * before the fork: our own 0, 1 and 2, folder and environment are those of the command that is begun next. Descriptors above
 * 2 are closed by exec, and no command inherits the launcher's. A spare that is told nothing ends with the launcher, whose
 * end of its pipe nobody else has: there is one spare at a time, and the pipe of the one before is closed.
 */
const SCRIPT = String.raw`${OPENING}
my ($in, $said, $sample, $spare, $is_held, %child) = ('', '', '');
my ($mode, $exists) = (POSIX::O_WRONLY() | POSIX::O_CREAT() | POSIX::O_APPEND(), POSIX::EEXIST());
sub report {
  while ($said ne '') {
    my $size = length $said;
    $size = rindex($said, "\n", ${WRITE_MAX} - 1) + 1 if $size > ${WRITE_MAX};
    my $sent = syswrite($report, $said, $size) // exit 1;
    substr($said, 0, $sent) = '';
  }
}
sub folder {
  my $path = shift;
  mkdir(substr($path, 0, -2), 0700) if substr($path, -2) eq '/1';
  return 1 if mkdir($path, 0700) || $! == $exists;
  return 0 if $! != POSIX::ENOENT() || $path !~ m{^(.+)/} || !folder($1);
  return mkdir($path, 0700) || $! == $exists;
}
sub lead {
  my $file = POSIX::open($_[0], $mode, 0600) // return 0;
  POSIX::dup2($file, $_[1]);
  POSIX::close($file);
}
sub is_ready {
  my ($folder, $cwd) = @_;
  return folder($folder) && lead("$folder/stdout", 1) && lead("$folder/stderr", 2) && chdir($cwd);
}
sub become {
  my ($id, $when, $command) = @_;
  await_go_ahead($id) if $when eq 'held';
  { no warnings; exec { $command->[0] } @$command; }
  refuse($id);
}
sub refuse {
  syswrite($report, "refused $_[0] " . ($! + 0) . "\n");
  POSIX::_exit(0);
}
sub spare {
  pipe(my $orders, my $order) or return;
  my $pid = fork() // return;
  if ($pid) { $spare = [$pid, $order]; return }
  close($order);
  POSIX::setsid();
  POSIX::sigprocmask($set, $none);
  rehearse() if $sample ne '';
  my $text = '';
  1 while sysread($orders, $text, 65536, length $text);
  POSIX::_exit(0) if $text eq '';
  become(obey($text));
}
sub rehearse {
  my ($id, $when, $cwd, $folder, $count, @command) = split /\0/, $sample, -1;
  my %own = splice(@command, $count);
  local @ENV{keys %own};
  obey($sample);
}
sub obey {
  my ($id, $when, $cwd, $folder, $count, @command) = split /\0/, $_[0], -1;
  my %own = splice(@command, $count);
  @ENV{keys %own} = values %own;
  is_ready($folder, $cwd) or refuse($id);
  return ($id, $when, \@command);
}
sub order {
  my ($pid, $order) = @{$spare // return 0};
  undef $spare;
  local $SIG{PIPE} = 'IGNORE';
  return 0 if (syswrite($order, $_[0]) // 0) != length $_[0];
  my ($id, $when, $cwd, $folder, $rest) = split /\0/, $_[0], 5;
  $sample = join("\0", $id, $when, '/', '/dev', $rest) if $sample eq '';
  return adopt($pid, $id, $when);
}
sub adopt {
  my ($pid, $id, $when) = @_;
  $child{$pid} = $id;
  $is_held = $when eq 'held';
  $said .= "begun $id $pid\n" if !$is_held;
  return 1;
}
sub begin {
  if ($_[0] eq '') { $is_held = 0; return }
  return if order($_[0]);
  my ($id, $when, $cwd, $folder, $count, @command) = split /\0/, $_[0], -1;
  my %own = splice(@command, $count);
  local @ENV{keys %own} = values %own;
  POSIX::sigprocmask($set, $none);
  my $pid = is_ready($folder, $cwd) ? fork() : undef;
  if (defined $pid && $pid == 0) { POSIX::setsid(); become($id, $when, \@command) }
  $said .= "refused $id " . ($! + 0) . "\n" if !defined $pid;
  POSIX::sigprocmask($block, $chld);
  adopt($pid, $id, $when) if defined $pid;
}
syswrite($report, "ready\n");
spare();
for (;;) {
  POSIX::sigprocmask($set, $none);
  my $count = select(my $now = $ready, undef, undef, undef);
  POSIX::sigprocmask($block, $chld);
  # Interrupted: the dot is read with the next turn.
  sysread($ends, my $dots, 4096) if $count > 0 && vec($now, fileno($ends), 1);
  while ((my $pid = waitpid(-1, $nohang)) > 0) {
    my ($status, $id) = ($?, delete $child{$pid});
    $said .= "ended $id $status\n" if defined $id;
    undef $spare if $spare && $spare->[0] == $pid;
  }
  my $is_asked = $count > 0 && vec($now, fileno($requests), 1);
  report() if $said ne '' && !$is_asked;
  if ($is_asked) {
    sysread($requests, $in, 65536, length $in) || exit 0;
    my $from = 0;
    while ((my $line = index($in, "\n", $from)) >= 0) {
      my $size = substr($in, $from, $line - $from);
      last if length($in) < $line + 1 + $size;
      begin(substr($in, $line + 1, $size));
      $from = $line + 1 + $size;
    }
    substr($in, 0, $from) = '';
    POSIX::dup2(fileno($null), $_) for 1, 2;
  }
  spare() if !$spare && !$is_held && $in eq '' && keys(%child) < ${BUSY};
  report() if $said ne '';
}
`;
