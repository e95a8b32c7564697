// The script of the shell that leads an agent's session: it records its own process first, exclusively (shell/1 in
// drivers/recording-shell.ts), runs the agent's program and records its exit. Signals that stop the agent do not stop
// the shell earlier: they live equally long.

import { shellWord } from '../../ir/quote.ts';
import { join } from 'node:path';
import { bootId, HAS_PROC } from '../../sys/process-table.ts';
import type { ProcessRequest } from '../../sys/process.ts';
import { UMASK } from '../../sys/private-file.ts';
import { beginning } from '../recording-shell.ts';
import type { Shell } from '../recording-shell.ts';

/**
 * `command`: a program with its arguments, verbatim. `terminal`: the shell exits with its terminal, so the system stops
 * the foreground program; a surviving shell would keep an unreachable agent alive.
 */
export function agentShellText(command: readonly string[], folder: string, terminal = false): string {
  const status = shellWord(join(folder, 'status'));
  return [
    beginning({ folder, bootId: bootId(), hasUptime: HAS_PROC, umask: UMASK }),
    terminal ? GO_WITH_TERMINAL : OUTLIVE,
    // Discards the shell's own messages ("Killed"): they are not the agent's.
    'exec 3>&2 2>/dev/null;',
    `${command.map(shellWord).join(' ')} 2>&3 3>&-;`,
    `meow_status=$?;echo "exit $meow_status">>${status};exit "$meow_status"`,
  ].join('');
}

/** The same shell as a detached process. */
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

/** A script as a command for a shell in a terminal; a shell that must stay lives as long as its program. */
export function shellCommand(shell: string, text: string): readonly string[] {
  return [shell, '-c', `${GO_WITH_TERMINAL}\n${text}`];
}

/** A trap with a command is reset in the program; an ignored signal would stay ignored. */
const OUTLIVE = 'trap : HUP INT QUIT TERM;';
const GO_WITH_TERMINAL = 'trap : INT QUIT TERM;';
