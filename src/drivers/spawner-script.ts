// The perl program of the spawn helper (spawner.ts): it starts processes, reports when they begin and end, and records how
// those end that cannot do so themselves.
//
// The helper lets SIGCHLD in only while it waits, and around a fork, because a child inherits the signal mask. The signal
// handler only writes to a pipe, so that no end is missed and nothing is interrupted. `exec` closes descriptors above 2.
//
// A *spare* is a copy of the helper that waits on a pipe for the request that it will become. Forking it takes longer than
// all else, so the helper does that while it has nothing to do. The engine says when, with an empty request: earlier, the
// fork would take the processor from the process that has just begun. A spare that gets no request ends with the helper.
//
// If many requests arrive together, there is no time for spares. Then the helper makes its own standard streams, working
// directory and environment those of the next process, and forks.
//
// Between the engine's check of a folder and the start of a process, another process can put a link in the folder's place.
// So the helper enters the folder itself, from the pinned folder on (sys/files.ts): it opens each folder without following a
// link, changes into what it has opened, and works with bare names. Nobody can lead it elsewhere.
//
// A fork takes time in proportion to memory, and most of it would be the part of POSIX that is written in perl. So the
// program loads the compiled part of POSIX alone, if it can.

import { constants as fs } from 'node:fs';
import { availableParallelism, constants } from 'node:os';

import { bootId } from '../sys/process.ts';
import { NOT_BEGUN } from './recording-shell.ts';

const { errno, signals } = constants;
/** Argument of fcntl, the same on Linux, macOS and the BSDs. */
const F_SETFL = 4;
/** Neither follows a link nor waits for a pipe (sys/files.ts, guard/1 and guard/2). */
const CAREFULLY = fs.O_NOFOLLOW | fs.O_NONBLOCK;
/** Other processes that put something in the place of a folder faster than this can only prevent a start. */
const ENTRIES_MAX = 10;
/** If this environment variable exists, perl does not load locales. */
export const SKIP_LOCALE = 'PERL_SKIP_LOCALE_INIT';
/** With more processes than this at work, a spare would only take their time. */
export const BUSY = availableParallelism();
/** The number of bytes that every system writes in one piece (PIPE_BUF); Linux does so with 4096. */
const WRITE_MAX = 512;

export function spawnerScript(): string {
  return String.raw`
use strict;
BEGIN {
  delete $ENV{${SKIP_LOCALE}};
  my ($home) = grep { -e "$_/POSIX.pm" } @INC;
  my $loaded = eval {
    open(my $module, '<', "$home/POSIX.pm") or die;
    while (<$module>) { last if ($POSIX::VERSION) = /^our \$VERSION = '([\d.]+)';/ }
    require XSLoader;
    eval qq{package POSIX;\n#line 1 "$home/POSIX.pm"\nXSLoader::load('POSIX', \$POSIX::VERSION); 1} or die;
  };
  require POSIX if !$loaded;
}
open(my $requests, '<&', \*STDIN) && open(my $report, '>&', \*STDOUT) && pipe(my $ends, my $end) or exit 1;
open(my $null, '<', '/dev/null') or exit 1;
POSIX::dup2(fileno($null), $_) for 0, 1, 2;
$SIG{FPE} = 'DEFAULT';
$SIG{PIPE} = 'IGNORE';
my ($chld, $none) = (POSIX::SigSet->new(${signals.SIGCHLD}), POSIX::SigSet->new());
my ($block, $set, $nohang) = (POSIX::SIG_BLOCK(), POSIX::SIG_SETMASK(), POSIX::WNOHANG());
POSIX::sigprocmask($block, $chld);
my $wake = sub { local $!; syswrite($end, '.') };
POSIX::sigaction(${signals.SIGCHLD}, bless({ HANDLER => $wake, MASK => $none, FLAGS => 0, SAFE => 0 }, 'POSIX::SigAction'));
fcntl($ends, ${F_SETFL}, ${fs.O_NONBLOCK}) or exit 1;
my $ready = ''; vec($ready, fileno($_), 1) = 1 for $requests, $ends;
my ($read, $append) = (${fs.O_RDONLY}, ${fs.O_WRONLY | fs.O_APPEND});
my $as_folder = ${fs.O_RDONLY | fs.O_DIRECTORY | fs.O_NOFOLLOW};
my $create = $append | ${fs.O_CREAT | fs.O_EXCL};

# What the next process needs, before it exists or in it.
sub parse {
  my ($id, $cwd, $top, $identity, $folders, $name, $records, $stdin, @rest) = split /\0/, $_[0], -1;
  my @lists;
  while (@rest) { my $count = shift @rest; push @lists, [splice(@rest, 0, $count)] }
  my ($files, $unset, $set, @commands) = @lists;
  return { id => $id, cwd => $cwd, place => [$top, $identity, $folders], name => $name, records => $records,
    stdin => $stdin, files => $files, unset => $unset, set => {@$set}, commands => \@commands };
}
sub make_ready {
  my $wanted = shift;
  my $name = $wanted->{name};
  enter(@{$wanted->{place}}) or return 0;
  my @files = @{$wanted->{files}};
  while (my ($end, $text) = splice(@files, 0, 2)) { write_all(create_anew("$name$end"), $text) or return 0 }
  return redirect($name . 'stdout', 1) && redirect($name . 'stderr', 2)
    && take_as(POSIX::open($wanted->{stdin}, $read), 0) && chdir($wanted->{cwd});
}
sub enter {
  my ($top, $identity, $folders) = @_;
  chdir($top) or return 0;
  if ($identity ne '' && join(':', (stat '.')[0, 1]) ne $identity) { $! = ${errno.ELOOP}; return 0 }
  for (split m{/}, $folders) { enter_folder($_) or return 0 }
  return 1;
}
sub enter_folder {
  my $name = shift;
  for (1 .. ${ENTRIES_MAX}) {
    if (sysopen(my $folder, $name, $as_folder)) { return chdir($folder) }
    # A link is one or the other.
    make_room($name, 1) or return 0 if $! == ${errno.ELOOP} || $! == ${errno.ENOTDIR};
    mkdir($name, 0700) || $! == ${errno.EEXIST} or return 0;
  }
  return 0;
}
sub redirect {
  my ($path, $to) = @_;
  my $file = POSIX::open($path, $create, 0600);
  return take_as($file, $to) if defined $file || $! != ${errno.EEXIST};
  # An earlier process of the attempt has created it, or somebody has put something there.
  my $own = reopen($path);
  return take_as(create_anew($path), $to) if !$own;
  fcntl($own, ${F_SETFL}, ${fs.O_APPEND});
  return POSIX::dup2(fileno($own), $to);
}
sub take_as {
  my ($file, $to) = @_;
  return 0 if !defined $file;
  POSIX::dup2($file, $to);
  POSIX::close($file);
}
# A file of ours, without a second name, to append to or to read from.
sub reopen {
  my ($path, $mode) = @_;
  sysopen(my $file, $path, ($mode // $append) | ${CAREFULLY}) or return undef;
  my ($links, $owner) = (stat $file)[3, 4];
  return -f _ && $links == 1 && $owner == $> ? $file : undef;
}
# What is in the way makes room (sys/files.ts, guard/3).
sub create_anew {
  my $path = shift;
  my $file = POSIX::open($path, $create, 0600);
  return $file if defined $file || $! != ${errno.EEXIST};
  return make_room($path) ? POSIX::open($path, $create, 0600) : undef;
}
sub make_room {
  my ($path, $keeps_files) = @_;
  lstat($path);
  my $keeps = -d _ || $keeps_files && -f _;
  return 1 if $keeps ? rename($path, sprintf('%s.aside-%06x%06x', $path, rand(1 << 24), rand(1 << 24))) : unlink($path);
  return $! == ${errno.ENOENT};
}
sub write_all {
  my ($file, $text) = @_;
  return 0 if !defined $file;
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

# In the new process.
sub become {
  my $wanted = shift;
  if ($wanted->{records} ne '') {
    enter(@{$wanted->{place}})
      && write_all(POSIX::open("$wanted->{name}status", $create, 0600), "$$ " . uptime() . " ${bootId()}\n$wanted->{records}\n")
      && chdir($wanted->{cwd}) or POSIX::_exit(${NOT_BEGUN});
  }
  $SIG{PIPE} = 'DEFAULT';
  no warnings;
  for (@{$wanted->{commands}}) { my ($path, @words) = @$_; exec { $path } @words }
  refuse($wanted->{id});
}
# Its exit status is one that nobody takes for that of a command.
sub refuse {
  syswrite($report, "refused $_[0] " . ($! + 0) . "\n");
  POSIX::_exit(${NOT_BEGUN});
}

my ($in, $reports, $spare, $may_fork_spare, $is_alone, $recorded, %child) = ('', '', undef, 1, 0, 0);
sub fork_spare {
  pipe(my $order, my $orders) or return;
  my $pid = fork() // return;
  if ($pid) { $spare = [$pid, $orders]; return }
  close($orders);
  POSIX::setsid();
  POSIX::sigprocmask($set, $none);
  my $text = '';
  1 while sysread($order, $text, 65536, length $text);
  POSIX::_exit(0) if $text eq '';
  my $wanted = parse($text);
  delete @ENV{@{$wanted->{unset}}};
  @ENV{keys %{$wanted->{set}}} = values %{$wanted->{set}};
  make_ready($wanted) or refuse($wanted->{id});
  become($wanted);
}
sub start {
  my $text = shift;
  if ($text eq '') { $may_fork_spare = 1; return }
  my $pid = give_to_spare($text) // fork_into($text) // return;
  my ($id, $cwd, $top, $identity, $folders, $name, $records) = split /\0/, $text, 8;
  $child{$pid} = [$id, $records ne '' ? [$name, $top, $identity, $folders] : undef];
  $recorded++ if $records ne '';
  $reports .= "begun $id $pid\n";
}
sub give_to_spare {
  my ($pid, $orders) = @{$spare // return undef};
  undef $spare;
  $may_fork_spare = 0;
  return (syswrite($orders, $_[0]) // 0) == length $_[0] ? $pid : undef;
}
sub fork_into {
  my $wanted = parse($_[0]);
  delete local @ENV{@{$wanted->{unset}}};
  local @ENV{keys %{$wanted->{set}}} = values %{$wanted->{set}};
  my $is_ready = make_ready($wanted);
  POSIX::sigprocmask($set, $none);
  my $pid = $is_ready ? fork() : undef;
  if (defined $pid && $pid == 0) { POSIX::setsid(); become($wanted) }
  $reports .= "refused $wanted->{id} " . ($! + 0) . "\n" if !defined $pid;
  POSIX::sigprocmask($block, $chld);
  return $pid;
}
sub record_end {
  my ($name, @place) = @{$_[0]};
  my ($pid, $wait) = @_[1, 2];
  enter(@place) or return;
  my $status = $wait & 127 ? 128 + ($wait & 127) : $wait >> 8;
  # It may have ended before it began.
  if ($status == ${NOT_BEGUN} || $wait & 127) {
    my $first = '';
    if (my $file = reopen($name . 'status', $read)) { sysread($file, $first, 64) }
    return if $first !~ /^$pid /;
  }
  my $file = reopen($name . 'status');
  syswrite($file, "exit $status\n") if $file;
}
sub send_reports {
  while ($reports ne '') {
    my $size = length $reports;
    $size = rindex($reports, "\n", ${WRITE_MAX} - 1) + 1 if $size > ${WRITE_MAX};
    my $sent = syswrite($report, $reports, $size) // last;
    substr($reports, 0, $sent) = '';
  }
  $reports = '';
}

syswrite($report, "ready\n");
for (;;) {
  send_reports();
  fork_spare() if !$spare && $may_fork_spare && !$is_alone && $in eq '' && keys(%child) < ${BUSY};
  exit 0 if $is_alone && !$recorded;
  POSIX::sigprocmask($set, $none);
  my $count = select(my $now = $ready, undef, undef, undef);
  POSIX::sigprocmask($block, $chld);
  # If SIGCHLD interrupts select, the dot is in the pipe although select does not say so.
  sysread($ends, my $dots, 4096) if $count < 0 || vec($now, fileno($ends), 1);
  while ((my $pid = waitpid(-1, $nohang)) > 0) {
    my ($wait, $known) = ($?, delete $child{$pid});
    # A spare that could not wait is not replaced at once.
    if ($spare && $spare->[0] == $pid) { undef $spare; $may_fork_spare = 0 }
    next if !$known;
    my ($id, $record) = @$known;
    if ($record) { record_end($record, $pid, $wait); $recorded-- }
    $reports .= "ended $id $wait\n";
  }
  next if $count <= 0 || $is_alone || !vec($now, fileno($requests), 1);
  if (!sysread($requests, $in, 65536, length $in)) {
    $is_alone = 1;
    undef $spare;
    vec($ready, fileno($requests), 1) = 0;
  }
  my $from = 0;
  while ((my $line = index($in, "\n", $from)) >= 0) {
    my $size = substr($in, $from, $line - $from);
    last if length($in) < $line + 1 + $size;
    start(substr($in, $line + 1, $size));
    $from = $line + 1 + $size;
  }
  substr($in, 0, $from) = '';
  # The streams of the last process are for nobody else.
  POSIX::dup2(fileno($null), $_) for 0, 1, 2;
}
`;
}
