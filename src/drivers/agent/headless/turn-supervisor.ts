// Starts the programs of turns and records how they end, from a small process beside the engine. To start a program by
// ourselves takes the engine's only thread a millisecond or two, and a shell that does nothing but record its end takes
// nearly as long. Used where turns follow each other fast, and only where there is a perl (turn-launcher.ts).
//
// R1  What the shell of a turn would leave (agent-shell.ts) is left: `status` says who leads, exclusively and first, and
//     how that ended. The leader is the program itself, in a session of its own.
// R2  It outlives the engine for as long as something that it has begun goes on, so that no end is lost; then it ends.
// R3  When it is gone, or says what cannot be understood, it is ended; those who waited for it are told, and look for
//     their programs themselves. One whose end nobody has recorded is lost.
//
// A spare is a copy of it, which rehearses what will be asked of it, by the example of an earlier request: the memory that a
// process touches first after a fork is copied then, and not when somebody waits.
//
// A command is: a file for the prompt, and the prompt; a file for the plan of its session, and the plan; a file for stdin; a
// shell, a text for it, a program, and its words.

import { join } from 'node:path';
import { wholeEnvironment } from '../../environment.ts';
import { findPerl, PerlStarter } from '../../spawner.ts';
import type { LaunchEvents } from '../../spawner.ts';
import { NOT_BEGUN } from '../../recording-shell.ts';
import { PROMPT } from './program.ts';
import type { ProgramRequest } from './program.ts';
import { PLAN } from './session-plan.ts';

export class Recorder extends PerlStarter {
  constructor(perl: string, environment: Readonly<Record<string, string>>) {
    super(perl, { own: OWN, outlives: true }, environment);
  }

  /** What it is asked for goes through pipes, field by field: a long prompt would take its time, and one with NUL bytes is cut. */
  static takes({ files: { prompt } }: ProgramRequest): boolean {
    return prompt.length <= PROMPT_MAX && !prompt.includes('\0');
  }

  start(request: ProgramRequest, events: LaunchEvents): void {
    this.request(() => this.#fields(request), events);
  }

  /** As `start`, but for the last step, which is taken when what is returned is called. Null where another waits for that. */
  prepare(request: ProgramRequest, events: LaunchEvents): (() => void) | null {
    return this.hold(() => this.#fields(request), events);
  }

  #fields({ cwd, folder, environment: layers, bare, files }: ProgramRequest): readonly string[] {
    const environment = wholeEnvironment(layers);
    const { stdin, shell, text, direct } = bare;
    const words = direct?.words ?? [];
    const gone = Object.keys(this.environment).filter((name) => environment[name] === undefined);
    const own = Object.entries(environment).filter(([name, value]) => this.environment[name] !== value);
    const left = [join(folder, PROMPT), files.prompt, join(folder, PLAN), files.plan];
    const command = [...left, stdin ?? '', shell, text, direct?.program ?? '', ...words];
    const names = [String(gone.length), ...gone, ...own.flat()];
    return [cwd, folder, String(command.length), ...command, ...names];
  }
}

const PROMPT_MAX = 64 * 1024;

/** Null where there is none that could be used. */
export function findRecorder(environment: Readonly<Record<string, string>>): Recorder | null {
  const perl = findPerl(environment);
  return perl === null ? null : new Recorder(perl, environment);
}

const OWN = String.raw`
sub is_ready {
  my ($folder, $cwd, $command) = @_;
  my ($prompt, $said, $plan, $session, $stdin) = @$command;
  return folder($folder) && leave($prompt, $replace, $said) && leave($plan, $replace, $session)
    && lead("$folder/stdout", $append, 1) && lead("$folder/stderr", $append, 2)
    && lead($stdin ne '' ? $stdin : '/dev/null', $read, 0);
}
my $sample = '';
sub can_spare { return 1 }
sub orders {
  $sample = $_[0] if $sample eq '';
  return $_[0];
}
sub be_spare {
  my ($orders) = @_;
  rehearse() if $sample ne '';
  my $text = '';
  1 while sysread($orders, $text, 65536, length $text);
  POSIX::_exit(0) if $text eq '';
  my ($id, $when, $cwd, $folder, $command, $gone, $own) = wish($text);
  delete @ENV{@$gone};
  @ENV{keys %$own} = values %$own;
  is_ready($folder, $cwd, $command) or refuse($id);
  go_on($id, $when, $cwd, $folder, $command);
}
sub rehearse {
  my ($id, $when, $cwd, $folder, $command, $gone, $own) = wish($sample);
  delete local @ENV{@$gone};
  local @ENV{keys %$own} = values %$own;
  my ($prompt, $said, $plan, @rest) = @$command;
  is_ready('/dev', '/', ['/dev/null', $said, '/dev/null', @rest]);
  uptime();
}
sub become {
  my ($id, $folder, $cwd, $command) = @_;
  my ($prompt, $said, $plan, $session, $stdin, $shell, $text, $program, @words) = @$command;
  take_lead($folder);
  no warnings;
  if (chdir($cwd)) {
    exec { $program } @words if $program ne '';
    exec { $shell } 'sh', '-c', $text;
  }
  print STDERR "it could not be started: $!\n";
  POSIX::_exit(126);
}
sub ended {
  my ($folder, $pid, $wait) = @_;
  my $status = $wait & 127 ? 128 + ($wait & 127) : $wait >> 8;
  # It may have ended before it began.
  if ($status == ${NOT_BEGUN} || $wait & 127) {
    my $first = '';
    if (open(my $file, '<', "$folder/status")) { $first = <$file> // '' }
    return if $first !~ /^$pid /;
  }
  leave("$folder/status", $append, "exit $status\n");
}
`;
