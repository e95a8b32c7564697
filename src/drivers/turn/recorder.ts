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
// A command is: a file for stdin, a shell, a text for it, a program, and its words.

import { wholeEnvironment } from '../environment.ts';
import { findPerl, PerlStarter } from '../perl-starter.ts';
import type { LaunchEvents } from '../perl-starter.ts';
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
    super(perl, { own: OWN, outlives: true }, environment);
  }

  start({ cwd, folder, environment: layers, bare }: ProgramRequest, events: LaunchEvents): void {
    const environment = wholeEnvironment(layers);
    const { stdin, shell, text, direct } = bare;
    const words = direct?.words ?? [];
    const gone = Object.keys(this.environment).filter((name) => environment[name] === undefined);
    const own = Object.entries(environment).filter(([name, value]) => this.environment[name] !== value);
    const command = [stdin ?? '', shell, text, direct?.program ?? '', ...words];
    const names = [String(gone.length), ...gone, ...own.flat()];
    this.request([cwd, folder, String(command.length), ...command, ...names], events);
  }
}

/** Null where there is none that could be used. */
export function findRecorder(environment: Readonly<Record<string, string>>): Recorder | null {
  const perl = findPerl(environment);
  return perl === null ? null : new Recorder(perl, environment);
}

const OWN = String.raw`
sub is_ready {
  my ($folder, $cwd, $command) = @_;
  my $stdin = $command->[0] ne '' ? $command->[0] : '/dev/null';
  return lead("$folder/stdout", $append, 1) && lead("$folder/stderr", $append, 2) && lead($stdin, $read, 0);
}
sub become {
  my ($id, $folder, $cwd, $command) = @_;
  my ($stdin, $shell, $text, $program, @words) = @$command;
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
  if ($status == ${NOT_BEGUN}) {
    my $first = '';
    if (open(my $file, '<', "$folder/status")) { $first = <$file> // '' }
    return if $first !~ /^$pid /;
  }
  leave($folder, $append, "exit $status\n");
}
`;
