// What the small processes of launcher.ts and drivers/agent/headless/turn-supervisor.ts do, in perl: they start others, as spawner.ts asks, and tell
// of their beginnings and ends. How one is made ready, and what it becomes, is in their own parts.
//
// SIGCHLD is let in only while nothing is done, and around a fork, since a child has what its parent had; its handler only
// writes to a pipe: an end can neither be missed nor interrupt anything. Descriptors above 2 are closed by exec, and nobody inherits them.
//
// A *spare* is a process that only has to be told what to become: it is made while there is nothing to do. The next one is
// made when the engine says so, by an empty request: at once it would take the processor from the one before, which somebody
// waits for. A spare that is told nothing ends with its maker, whose end of its pipe nobody else has: there is one spare at a
// time, and the pipe of the one before is closed.
//
// Where many are asked for together there is no time for spares. Then everything that a process needs is made ready before the
// fork: our own 0, 1 and 2, folder and environment are those of the one that is begun next.
//
// An end is told at once, unless there is something to begin.
//
// A fork takes as long as there is memory, and what is written in perl around the compiled part of POSIX is most of it. So that
// part is loaded alone, where that can be.

import { constants as fs } from 'node:fs';
import { availableParallelism, constants } from 'node:os';
import { BOOT_ID } from './process-table.ts';
import { NOT_BEGUN } from './recording-shell.ts';

export interface PerlParts {
  /**
   * Subs `is_ready` (folder, cwd, command), `become` (id, folder, cwd, command) and `ended` (folder, pid, wait status). Of spares:
   * `can_spare`, whether there are any; `be_spare` (orders), what one does; `orders` (request), what one is told.
   */
  readonly own: string;
  /** Goes on without an engine for as long as something that it has begun does. */
  readonly outlives: boolean;
}

export function perlScript({ own, outlives }: PerlParts): string {
  return `${OPENING}${outlives ? "$SIG{PIPE} = 'IGNORE';\n" : ''}my $outlives = ${Number(outlives)};\n${own}${LOOP}`;
}

const {
  errno,
  signals: { SIGCHLD },
} = constants;
/** Of fcntl, on every system that we know. */
const F_SETFL = 4;
/** Its presence keeps perl from reading what it would know of languages and regions. */
export const UNLOCALISED = 'PERL_SKIP_LOCALE_INIT';
/** With more than these at work a spare only takes their time. */
export const BUSY = availableParallelism();
/** Of an id on the pipe of those who are held, with its line end. */
export const ID_WIDTH = 12;
/** What every system writes in one piece (PIPE_BUF); Linux does so with 4096. */
const WRITE_MAX = 512;

const OPENING = String.raw`
use strict;
BEGIN {
  delete $ENV{${UNLOCALISED}};
  my ($home) = grep { -e "$_/POSIX.pm" } @INC;
  my $loaded = eval {
    open(my $module, '<', "$home/POSIX.pm") or die;
    while (<$module>) { last if ($POSIX::VERSION) = /^our \$VERSION = '([\d.]+)';/ }
    require XSLoader;
    eval qq{package POSIX;\n#line 1 "$home/POSIX.pm"\nXSLoader::load('POSIX', \$POSIX::VERSION); 1} or die;
  };
  require POSIX if !$loaded;
}
open(my $requests, '<&', \*STDIN) && open(my $report, '>&', \*STDOUT) && open(my $ahead, '<&', 3) && pipe(my $ends, my $end) or exit 1;
POSIX::close(3);
open(my $null, '<', '/dev/null') or exit 1;
POSIX::dup2(fileno($null), $_) for 0, 1, 2;
$SIG{FPE} = 'DEFAULT';
my ($chld, $none) = (POSIX::SigSet->new(${SIGCHLD}), POSIX::SigSet->new());
my ($block, $set, $nohang) = (POSIX::SIG_BLOCK(), POSIX::SIG_SETMASK(), POSIX::WNOHANG());
POSIX::sigprocmask($block, $chld);
my $tell = sub { local $!; syswrite($end, '.') };
POSIX::sigaction(${SIGCHLD}, bless({ HANDLER => $tell, MASK => $none, FLAGS => 0, SAFE => 0 }, 'POSIX::SigAction'));
fcntl($ends, ${F_SETFL}, ${fs.O_NONBLOCK}) or exit 1;
my $ready = ''; vec($ready, fileno($_), 1) = 1 for $requests, $ends;
my $spare;
my $read = ${fs.O_RDONLY};
my ($append, $create, $replace) = map { ${fs.O_WRONLY | fs.O_CREAT} | $_ } ${fs.O_APPEND}, ${fs.O_EXCL}, ${fs.O_TRUNC};
sub lead {
  my ($path, $mode, $to) = @_;
  my $file = POSIX::open($path, $mode, 0600) // return 0;
  POSIX::dup2($file, $to);
  POSIX::close($file);
}
sub folder {
  my $path = shift;
  mkdir(substr($path, 0, -2), 0700) if substr($path, -2) eq '/1';
  return 1 if mkdir($path, 0700) || $! == ${errno.EEXIST};
  return 0 if $! != ${errno.ENOENT} || $path !~ m{^(.+)/} || !folder($1);
  return mkdir($path, 0700) || $! == ${errno.EEXIST};
}
sub leave {
  my ($path, $mode, $text) = @_;
  my $file = POSIX::open($path, $mode, 0600) // return 0;
  my $written = POSIX::write($file, $text, length $text) // -1;
  POSIX::close($file);
  return 1 if $written == length $text;
  $! ||= ${errno.ENOSPC};
  return 0;
}
sub uptime {
  my $file = POSIX::open('/proc/uptime') // return '-';
  POSIX::read($file, my $text, 64);
  POSIX::close($file);
  return $text =~ /^(\S+)/ ? $1 : '-';
}
# In the process that leads, first (wrapper.ts, W1).
sub take_lead { leave("$_[0]/status", $create, "$$ " . uptime() . " ${BOOT_ID}\n") or POSIX::_exit(${NOT_BEGUN}) }
# Whoever is not to begin after all ends with a status that nobody takes for that of a command.
sub refuse {
  syswrite($report, "refused $_[0] " . ($! + 0) . "\n");
  POSIX::_exit(${NOT_BEGUN});
}
`;

const LOOP = String.raw`
my ($in, $said, $is_hasty, $is_alone, %child) = ('', '');
sub report {
  while ($said ne '') {
    my $size = length $said;
    $size = rindex($said, "\n", ${WRITE_MAX} - 1) + 1 if $size > ${WRITE_MAX};
    my $sent = syswrite($report, $said, $size) // last;
    substr($said, 0, $sent) = '';
  }
  $said = '';
}
sub wish {
  my ($id, $when, $cwd, $folder, $count, @rest) = split /\0/, $_[0], -1;
  my @command = splice(@rest, 0, $count);
  my @gone = splice(@rest, 0, shift @rest);
  return ($id, $when, $cwd, $folder, \@command, \@gone, {@rest});
}
# An id of another is of one that died before it could read it.
sub await_go_ahead {
  my ($id, $told) = ($_[0], 0);
  while ($told != $id) {
    $told = '';
    while ((my $rest = ${ID_WIDTH} - length $told) > 0) { sysread($ahead, $told, $rest, length $told) || POSIX::_exit(${NOT_BEGUN}) }
  }
  syswrite($report, "begun $id $$\n");
}
sub go_on {
  my ($id, $when, $cwd, $folder, $command) = @_;
  await_go_ahead($id) if $when eq 'held';
  $SIG{PIPE} = 'DEFAULT' if $outlives;
  become($id, $folder, $cwd, $command);
}
sub spare {
  pipe(my $orders, my $order) or return;
  my $pid = fork() // return;
  if ($pid) { $spare = [$pid, $order]; return }
  close($order);
  POSIX::setsid();
  POSIX::sigprocmask($set, $none);
  be_spare($orders);
}
sub order {
  my ($pid, $order) = @{$spare // return 0};
  my $told = orders($_[0]);
  undef $spare;
  $is_hasty = 1;
  local $SIG{PIPE} = 'IGNORE';
  return 0 if (syswrite($order, $told) // 0) != length $told;
  my ($id, $when, $cwd, $folder) = split /\0/, $_[0], 5;
  return adopt($pid, $id, $when, $folder);
}
sub adopt {
  my ($pid, $id, $when, $folder) = @_;
  $child{$pid} = [$id, $folder];
  $said .= "begun $id $pid\n" if $when ne 'held';
  return 1;
}
sub begin {
  if ($_[0] eq '') { $is_hasty = 0; return }
  return if order($_[0]);
  my ($id, $when, $cwd, $folder, $command, $gone, $own) = wish($_[0]);
  delete local @ENV{@$gone};
  local @ENV{keys %$own} = values %$own;
  my $is_ready = is_ready($folder, $cwd, $command);
  POSIX::sigprocmask($set, $none);
  my $pid = $is_ready ? fork() : undef;
  if (defined $pid && $pid == 0) { POSIX::setsid(); go_on($id, $when, $cwd, $folder, $command) }
  $said .= "refused $id " . ($! + 0) . "\n" if !defined $pid;
  POSIX::sigprocmask($block, $chld);
  adopt($pid, $id, $when, $folder) if defined $pid;
}
syswrite($report, "ready\n");
spare() if can_spare();
for (;;) {
  POSIX::sigprocmask($set, $none);
  my $count = select(my $now = $ready, undef, undef, undef);
  POSIX::sigprocmask($block, $chld);
  # Interrupted, by the signal of an end: its dot is there, though nobody says so.
  sysread($ends, my $dots, 4096) if $count < 0 || vec($now, fileno($ends), 1);
  while ((my $pid = waitpid(-1, $nohang)) > 0) {
    my ($wait, $known) = ($?, delete $child{$pid});
    # One that could not even wait is not followed by another at once.
    if ($spare && $spare->[0] == $pid) { undef $spare; $is_hasty = 1 }
    next if !$known;
    ended($known->[1], $pid, $wait);
    $said .= "ended $known->[0] $wait\n";
  }
  my $is_asked = $count > 0 && !$is_alone && vec($now, fileno($requests), 1);
  report() if $said ne '' && !$is_asked;
  if ($is_asked) {
    if (!sysread($requests, $in, 65536, length $in)) {
      exit 0 if !$outlives;
      $is_alone = 1;
      undef $spare;
      vec($ready, fileno($requests), 1) = 0;
    }
    my $from = 0;
    while ((my $line = index($in, "\n", $from)) >= 0) {
      my $size = substr($in, $from, $line - $from);
      last if length($in) < $line + 1 + $size;
      begin(substr($in, $line + 1, $size));
      $from = $line + 1 + $size;
    }
    substr($in, 0, $from) = '';
    # What the last one was given is nobody else's.
    POSIX::dup2(fileno($null), $_) for 0, 1, 2;
  }
  spare() if !$spare && !$is_hasty && !$is_alone && $in eq '' && can_spare() && keys(%child) < ${BUSY};
  report() if $said ne '';
  exit 0 if $is_alone && !%child;
}
`;
