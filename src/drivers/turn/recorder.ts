// Starts the programs of turns and records how they end, from a small process beside the engine. To start a program by
// ourselves takes the engine's only thread a millisecond or two, and a shell that does nothing but record its end takes
// nearly as long. Used where turns follow each other fast, and only where there is a perl (starter.ts).
//
// R1  What the shell of a turn would leave (agent-shell.ts) is left: `status` says who leads, exclusively and first, and
//     how that ended. The leader is the program itself, in a session of its own.
// R2  It outlives the engine for as long as something that it has begun goes on, so that no end is lost; then it ends.
// R3  When it is gone, or says what cannot be understood, it is ended; those who waited for it are told, and look for
//     their programs themselves. One whose end nobody has recorded is lost.
//
// A request (perl-starter.ts) is: id, when, cwd, folder, boot id, file for stdin, shell, text, program, number of words, words, names to
// take out of the environment by their number and one by one, and names and values that differ from our own.

import { wholeEnvironment } from '../environment.ts';
import { findPerl, OPENING, PerlStarter, WRITE_MAX } from '../perl-starter.ts';
import type { LaunchEvents } from '../perl-starter.ts';
import { BOOT_ID } from '../process-table.ts';
import type { ProcessRequest } from '../process.ts';
import { NOT_BEGUN } from '../wrapper.ts';

/** What is to be run, and in the request itself a shell that runs it and records. */
export interface ProgramRequest extends ProcessRequest {
  readonly bare: BareCommand;
}

export interface BareCommand {
  /** Absolute; null: nothing is to be read. */
  readonly stdin: string | null;
  /** The path of a shell, and a text for it. */
  readonly shell: string;
  readonly text: string;
  /** Where the text is nothing but words: the program, and they. Where that cannot be run, the shell says why. */
  readonly direct: { readonly program: string; readonly words: readonly string[] } | null;
}

export class Recorder extends PerlStarter {
  constructor(perl: string, environment: Readonly<Record<string, string>>) {
    super(perl, SCRIPT, environment);
  }

  start({ cwd, folder, environment: layers, bare }: ProgramRequest, events: LaunchEvents): void {
    const environment = wholeEnvironment(layers);
    const { stdin, shell, text, direct } = bare;
    const words = direct?.words ?? [];
    const gone = Object.keys(this.environment).filter((name) => environment[name] === undefined);
    const own = Object.entries(environment).filter(([name, value]) => this.environment[name] !== value);
    const command = [shell, text, direct?.program ?? '', String(words.length), ...words];
    this.request([cwd, folder, BOOT_ID, stdin ?? '', ...command, String(gone.length), ...gone, ...own.flat()], events);
  }
}

/** Null where there is none that could be used. */
export function findRecorder(environment: Readonly<Record<string, string>>): Recorder | null {
  const perl = findPerl(environment);
  return perl === null ? null : new Recorder(perl, environment);
}

/**
 * Everything that a program needs is made ready before the fork: what a child does before it becomes its program copies the
 * memory that it touches.
 */
const SCRIPT = String.raw`${OPENING}
my ($in, $said, $alone, %child) = ('', '', 0);
my ($append, $create) = (POSIX::O_WRONLY() | POSIX::O_CREAT() | POSIX::O_APPEND(), POSIX::O_WRONLY() | POSIX::O_CREAT() | POSIX::O_EXCL());
$SIG{PIPE} = 'IGNORE';
sub report {
  while ($said ne '' && !$alone) {
    my $size = length $said;
    $size = rindex($said, "\n", ${WRITE_MAX} - 1) + 1 if $size > ${WRITE_MAX};
    my $sent = syswrite($report, $said, $size) // last;
    substr($said, 0, $sent) = '';
  }
  $said = '';
}
sub lead {
  my ($path, $mode, $to) = @_;
  my $file = POSIX::open($path, $mode, 0600) // return 0;
  POSIX::dup2($file, $to);
  POSIX::close($file);
}
sub leave {
  my ($folder, $mode, $text) = @_;
  my $file = POSIX::open("$folder/status", $mode, 0600) // return 0;
  my $written = POSIX::write($file, $text, length $text);
  POSIX::close($file);
  return $written;
}
sub uptime {
  my $file = POSIX::open('/proc/uptime') // return '-';
  POSIX::read($file, my $text, 64);
  POSIX::close($file);
  return $text =~ /^(\S+)/ ? $1 : '-';
}
sub begin {
  my ($id, $when, $cwd, $folder, $boot, $stdin, $shell, $text, $program, $count, @rest) = split /\0/, $_[0], -1;
  my @words = splice(@rest, 0, $count);
  my @gone = splice(@rest, 0, shift @rest);
  my %own = @rest;
  local %ENV = %ENV;
  delete @ENV{@gone};
  @ENV{keys %own} = values %own;
  my $open = lead("$folder/stdout", $append, 1) && lead("$folder/stderr", $append, 2);
  # What the one before was given to read is nobody else's.
  $open = lead($stdin ne '' ? $stdin : '/dev/null', POSIX::O_RDONLY(), 0) if $open;
  my $pid = $open ? fork() : undef;
  if ($pid) { $child{$pid} = [$id, $folder]; $said .= "begun $id $pid\n"; return }
  if (!defined $pid) { $said .= "refused $id " . ($! + 0) . "\n"; return }
  POSIX::setsid();
  leave($folder, $create, "$$ " . uptime() . " $boot\n") or POSIX::_exit(${NOT_BEGUN});
  $SIG{PIPE} = 'DEFAULT';
  POSIX::sigprocmask($set, $none);
  no warnings;
  if (chdir($cwd)) {
    exec { $program } @words if $program ne '';
    exec { $shell } 'sh', '-c', $text;
  }
  print STDERR "it could not be started: $!\n";
  POSIX::_exit(126);
}
sub ended {
  my ($pid, $wait) = @_;
  my $known = delete $child{$pid} // return;
  my ($id, $folder) = @$known;
  my $status = $wait & 127 ? 128 + ($wait & 127) : $wait >> 8;
  my $is_ours = 1;
  if ($status == ${NOT_BEGUN}) {
    my $first = '';
    if (open(my $file, '<', "$folder/status")) { $first = <$file> // '' }
    $is_ours = $first =~ /^$pid /;
  }
  leave($folder, $append, "exit $status\n") if $is_ours;
  $said .= "ended $id $wait\n";
}
syswrite($report, "ready\n");
for (;;) {
  POSIX::sigprocmask($set, $none);
  my $count = select(my $now = $ready, undef, undef, undef);
  POSIX::sigprocmask($block, $chld);
  # Interrupted: the dot is read with the next turn.
  sysread($ends, my $dots, 4096) if $count > 0 && vec($now, fileno($ends), 1);
  while ((my $pid = waitpid(-1, $nohang)) > 0) { ended($pid, $?) }
  if ($count > 0 && !$alone && vec($now, fileno($requests), 1)) {
    if (!sysread($requests, $in, 65536, length $in)) { $alone = 1; vec($ready, fileno($requests), 1) = 0 }
    my $from = 0;
    while ((my $line = index($in, "\n", $from)) >= 0) {
      my $size = substr($in, $from, $line - $from);
      last if length($in) < $line + 1 + $size;
      begin(substr($in, $line + 1, $size));
      $from = $line + 1 + $size;
    }
    substr($in, 0, $from) = '';
    POSIX::dup2(fileno($null), $_) for 0, 1, 2;
  }
  report() if $said ne '';
  exit 0 if $alone && !%child;
}
`;
