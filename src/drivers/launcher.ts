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
// A request is its length, a line end, and fields separated by NUL: id, cwd, step folder, number of arguments, arguments,
// and the environment's names and values where they differ from the launcher's own. Reports are lines: `ready`,
// `begun ID PID`, `refused ID ERRNO`, `ended ID WAIT-STATUS`. A child that cannot become its command writes its own line
// beside its parent's: each write is of whole lines and so short that the system does not divide it.

import { spawn } from 'node:child_process';
import type { ChildProcessByStdio } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { availableParallelism, constants } from 'node:os';
import { getSystemErrorName } from 'node:util';
import { present } from '../base/assert.ts';
import type { ErrnoError } from '../base/errno.ts';
import type { ProcessEvents, ProcessRequest } from './process.ts';
import { OWNER_MASKED } from './step-folder.ts';
import { findProgram } from './wrapper.ts';

export interface LaunchEvents extends ProcessEvents {
  /** The launcher is gone, and nobody knows how far it came with this. */
  abandoned(): void;
}

export class Launcher {
  readonly #environment: Readonly<Record<string, string>>;
  readonly #waiting = new Map<string, LaunchEvents>();
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  #count = 0;
  #partial = '';
  #state: 'starting' | 'ready' | 'gone' = 'starting';

  constructor(perl: string, environment: Readonly<Record<string, string>>) {
    // What would change how perl itself runs is given to the commands alone.
    this.#environment = Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('PERL')));
    this.#process = spawn(perl, ['-e', SCRIPT], {
      detached: true,
      env: this.#environment,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    this.#process.stdout.setEncoding('latin1');
    this.#process.stdout.on('data', (text: string) => this.#read(text));
    // A broken pipe, a perl that cannot be started, one that was killed: all the same to those who wait.
    this.#process.stdin.on('error', () => this.#breakDown());
    this.#process.on('error', () => this.#breakDown());
    this.#process.on('close', () => this.#breakDown());
    this.#hold(false);
  }

  /** Until it is, and once it is gone, processes are started without it. */
  get ready(): boolean {
    return this.#state === 'ready';
  }

  get pid(): number {
    return present(this.#process.pid, 'the launcher never was');
  }

  start(request: ProcessRequest, events: LaunchEvents): void {
    this.#count += 1;
    const id = String(this.#count);
    if (this.#waiting.size === 0) this.#hold(true);
    this.#waiting.set(id, events);
    const own = Object.entries(request.environment).filter(([name, value]) => this.#environment[name] !== value);
    const { cwd, folder, path, args } = request;
    const fields = [id, cwd, folder, String(args.length + 1), path, ...args, ...own.flat()];
    const text = fields.join('\0');
    this.#process.stdin.write(`${Buffer.byteLength(text)}\n${text}`);
  }

  #read(text: string): void {
    const lines = (this.#partial + text).split('\n');
    this.#partial = lines.pop() ?? '';
    for (const line of lines) {
      if (this.#state === 'gone') return;
      if (line === 'ready') {
        this.#state = 'ready';
        continue;
      }
      const report = REPORT.exec(line);
      if (report === null) {
        this.#breakDown();
        return;
      }
      const [, what, id = '', number = ''] = report;
      const events = this.#waiting.get(id);
      if (events === undefined) continue;
      if (what === 'begun') {
        events.begun(Number(number));
        continue;
      }
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) this.#hold(false);
      if (what === 'ended') events.ended(statusOf(Number(number)));
      else events.refused(errnoError(Number(number)));
    }
  }

  #breakDown(): void {
    if (this.#state === 'gone') return;
    this.#state = 'gone';
    this.#process.kill('SIGKILL');
    this.#hold(false);
    const left = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const events of left) events.abandoned();
  }

  /** The engine lives for the sake of commands that run, not for the sake of the launcher. */
  #hold(held: boolean): void {
    for (const part of [this.#process, this.#process.stdin, this.#process.stdout]) {
      // Pipes are sockets here, and only those of the types know that they can be let go.
      const handle = part as { ref?(): void; unref?(): void };
      if (held) handle.ref?.();
      else handle.unref?.();
    }
  }
}

const REPORT = /^(begun|refused|ended) (\d+) (\d+)$/;

/** Null where there is none, or where the umask takes away what the launcher's folders need. */
export function findLauncher(environment: Readonly<Record<string, string>>): Launcher | null {
  const perl = OWNER_MASKED ? null : findProgram('perl', environment['PATH'] ?? '');
  return perl === null ? null : new Launcher(perl, environment);
}

/** A wait status as shells tell it: death by signal N is 128 + N. */
function statusOf(wait: number): number {
  const signal = wait & 127;
  return signal === 0 ? wait >> 8 : 128 + signal;
}

function errnoError(errno: number): ErrnoError {
  const code = getSystemErrorName(-errno);
  return Object.assign(new Error(`${code}: the process could not be started`), { code, errno, syscall: 'exec' });
}

/** What every system writes in one piece (PIPE_BUF); Linux does so with 4096. */
const WRITE_MAX = 512;
/** With more than these at work a spare only takes their time. */
const BUSY = availableParallelism();

/**
 * SIGCHLD is let in only while it waits, and its handler only writes to a pipe: an end can neither be missed nor
 * interrupt anything. An end is told at once, a beginning when the next spare is made: whoever runs for less than that
 * costs the engine one turn, not two.
 *
 * Where many are asked for together there is no time for spares. Then everything that a command needs is made ready
 * before the fork, since what a child does before it becomes its command copies the memory that it touches: our own 0, 1 and
 * 2 are those of the command that is begun next. Descriptors above 2 are closed by exec, and no command inherits the
 * launcher's. A spare that is told nothing ends with the launcher, whose end of its pipe nobody else has: there is one
 * spare at a time, and the pipe of the one before is closed.
 */
const SCRIPT = String.raw`
use strict; use POSIX ();
my ($in, $said, $spare, %child) = ('', '');
open(my $requests, '<&', \*STDIN) && open(my $report, '>&', \*STDOUT) && pipe(my $ends, my $end) or exit 1;
open(my $null, '<', '/dev/null') or exit 1;
my $mode = POSIX::O_WRONLY() | POSIX::O_CREAT() | POSIX::O_APPEND();
POSIX::dup2(fileno($null), $_) for 0, 1, 2;
$SIG{FPE} = 'DEFAULT';
my ($chld, $none) = (POSIX::SigSet->new(${constants.signals.SIGCHLD}), POSIX::SigSet->new());
my ($block, $set, $nohang) = (POSIX::SIG_BLOCK(), POSIX::SIG_SETMASK(), POSIX::WNOHANG());
POSIX::sigprocmask($block, $chld);
POSIX::sigaction(${constants.signals.SIGCHLD}, POSIX::SigAction->new(sub { syswrite($end, '.') }));
my $ready = ''; vec($ready, fileno($_), 1) = 1 for $requests, $ends;
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
  folder($1) if $path =~ m{^(.*)/1$};
  return 1 if mkdir($path, 0700) || $! == POSIX::EEXIST();
  return 0 if $! != POSIX::ENOENT() || $path !~ m{^(.+)/} || !folder($1);
  return mkdir($path, 0700) || $! == POSIX::EEXIST();
}
sub lead {
  my $file = POSIX::open($_[0], $mode, 0600) // return 0;
  POSIX::dup2($file, $_[1]);
  POSIX::close($file);
}
sub become {
  my ($id, $cwd, @command) = @_;
  { no warnings; chdir($cwd) && exec { $command[0] } @command; }
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
  my $text = '';
  1 while sysread($orders, $text, 65536, length $text);
  POSIX::_exit(0) if $text eq '';
  my ($id, $cwd, $folder, $count, @command) = split /\0/, $text, -1;
  my %own = splice(@command, $count);
  @ENV{keys %own} = values %own;
  folder($folder) && lead("$folder/stdout", 1) && lead("$folder/stderr", 2) or refuse($id);
  become($id, $cwd, @command);
}
sub order {
  my ($pid, $order) = @{$spare // return 0};
  undef $spare;
  local $SIG{PIPE} = 'IGNORE';
  return 0 if (syswrite($order, $_[0]) // 0) != length $_[0];
  my ($id) = split /\0/, $_[0], 2;
  $child{$pid} = $id;
  $said .= "begun $id $pid\n";
}
sub begin {
  return if order($_[0]);
  my ($id, $cwd, $folder, $count, @command) = split /\0/, $_[0], -1;
  my %own = splice(@command, $count);
  local @ENV{keys %own} = values %own;
  my $pid = folder($folder) && lead("$folder/stdout", 1) && lead("$folder/stderr", 2) ? fork() : undef;
  if ($pid) { $child{$pid} = $id; $said .= "begun $id $pid\n"; return }
  if (!defined $pid) { $said .= "refused $id " . ($! + 0) . "\n"; return }
  POSIX::setsid();
  POSIX::sigprocmask($set, $none);
  become($id, $cwd, @command);
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
  report() if $said ne '';
  if ($count > 0 && vec($now, fileno($requests), 1)) {
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
  spare() if !$spare && $in eq '' && keys(%child) < ${BUSY};
  report() if $said ne '';
}
`;
