// The text of the shell that leads an agent's session: it records who it is before anything else, and exclusively (W1 in
// drivers/recording-shell.ts), runs the agent's program, and records how that ended. Signals that end the agent do not end the shell
// before it: as long as the one lives, the other does.

import { shellWord } from '../../ir/quote.ts';
import { join } from 'node:path';
import { BOOT_ID, HAS_PROC } from '../process-table.ts';
import type { ProcessRequest } from '../process.ts';
import { UMASK } from '../../sys/private-file.ts';
import { beginning } from '../recording-shell.ts';
import type { Shell } from '../recording-shell.ts';

/**
 * `command`: a program and its arguments, each as it is. `terminal`: the shell goes with its terminal, and so the system ends
 * what is in the foreground there; a shell that stayed would keep an agent alive that nobody can reach.
 */
export function agentShellText(command: readonly string[], folder: string, terminal = false): string {
  const status = shellWord(join(folder, 'status'));
  return [
    beginning({ folder, bootId: BOOT_ID, hasUptime: HAS_PROC, umask: UMASK }),
    terminal ? GO_WITH_TERMINAL : OUTLIVE,
    // The shell's own remarks ("Killed") are not the agent's: they go nowhere.
    'exec 3>&2 2>/dev/null;',
    `${command.map(shellWord).join(' ')} 2>&3 3>&-;`,
    `meow_status=$?;echo "exit $meow_status">>${status};exit "$meow_status"`,
  ].join('');
}

/** Such a shell as a process of its own, which this one may leave behind. */
export function agentShellRequest(asked: {
  readonly shell: Shell;
  readonly command: readonly string[];
  readonly workdir: string;
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
}): ProcessRequest {
  const { shell, command, workdir, folder, environment } = asked;
  const args = ['-c', agentShellText(command, folder), shell.name];
  return {
    path: shell.path,
    args,
    cwd: workdir,
    environment: { base: environment, own: {} },
    folder,
    background: true,
  };
}

/** A text for a shell in a terminal, as such a command: a shell that has to stay for it does so for as long as what it runs. */
export function shellCommand(shell: string, text: string): readonly string[] {
  return [shell, '-c', `${GO_WITH_TERMINAL}\n${text}`];
}

/** A trap that does something is not passed on to the program; one that does nothing would be. */
const OUTLIVE = 'trap : HUP INT QUIT TERM;';
const GO_WITH_TERMINAL = 'trap : INT QUIT TERM;';
