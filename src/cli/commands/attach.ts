// `meow attach`: the terminal of an agent, in this one. Whoever looks on may type: the agent cannot tell, and what is
// delivered next waits until the input is empty.

import { spawnSync } from 'node:child_process';
import { constants } from 'node:os';
import { UsageError } from '../../base/usage-error.ts';
import { findProgram } from '../../drivers/wrapper.ts';
import { placeOfSocket } from '../../drivers/tmux/private-socket.ts';
import { shellWord } from '../../ir/quote.ts';
import { brief } from '../../view/row.ts';
import { statusView } from '../../view/status.ts';
import { EXIT } from '../exit.ts';
import { findProject } from '../project.ts';
import { readRun, resolveRun, storeOf } from '../runs.ts';
import { say } from '../say.ts';
import { readSettings } from '../settings.ts';
import { ownEnvironment } from '../own-environment.ts';

export async function attach(
  wanted: string,
  agent: string,
  options: { readonly readOnly?: true; readonly print?: true },
): Promise<number> {
  const project = findProject();
  const store = storeOf(project);
  const id = await resolveRun(store, wanted);
  const { state } = await readRun(store, id);
  const { agents } = statusView(state);
  const found = agents.find((each) => each.id === agent);
  if (found === undefined) {
    const names = agents.map((each) => brief(each.id)).join(', ');
    throw new UsageError(`run ${id} has no agent ${agent}`, names === '' ? 'it has no agents' : `it has: ${names}`);
  }
  if (found.terminal === null) {
    const what = found.adapter === null ? '' : ` (adapter ${found.adapter})`;
    throw new UsageError(`agent ${agent} has no terminal${what}`, `what it does: meow trace ${id} --follow`);
  }
  const environment = ownEnvironment();
  const program = findProgram('tmux', environment['PATH'] ?? '');
  if (program === null) throw new UsageError('there is no tmux on PATH', 'install tmux 3.2 or later');
  const { TMUX: _around, ...without } = environment;
  const shared = readSettings(project).config.tmux === 'shared';
  const run = { runFolder: store.runFolder(id), mark: state.request?.mark ?? '' };
  const socket = shared ? null : placeOfSocket(run).socket;
  const args = [
    ...(socket === null ? [] : ['-S', socket]),
    'attach-session',
    ...(options.readOnly ? ['-r'] : []),
    '-t',
    `=${found.terminal}`,
  ];
  if (options.print || !process.stdin.isTTY || !process.stdout.isTTY) {
    say(['tmux', ...args].map(shellWord).join(' '));
    return EXIT.done;
  }
  // From within a session of the user's own server ours is another server, which is no nesting; the same one is.
  const { status, signal, error } = spawnSync(program, args, { stdio: 'inherit', env: shared ? environment : without });
  if (error !== undefined) throw error;
  if (signal !== null) return 128 + constants.signals[signal];
  if (status === 0) return EXIT.done;
  throw new UsageError(
    `agent ${agent} has no session ${found.terminal} any more`,
    `how it stands: meow agents --workflow ${id}`,
  );
}
