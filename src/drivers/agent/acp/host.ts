// Host of agents that speak the Agent Client Protocol. Each is a process of its own that reads from a pipe in the folder of
// its start and writes to a file there. It runs without the engine: a shell holds both ends of the pipe open, so that it
// never ends, and the file takes all output. Rules host/1 to host/6.

import { join } from 'node:path';
import type { McpServer } from '@agentclientprotocol/sdk/unstable';

import { err, ok, present, type Result } from '../../../base/errors.ts';
import type { Adapter } from '../../../ir/adapter.ts';
import { shellWord } from '../../../ir/quote.ts';
import { makeFolder, readRecord, writeJsonFile } from '../../../sys/files.ts';
import type { DriverContext } from '../../environment.ts';
import { findShell } from '../../recording-shell.ts';
import { unlessRefused } from '../../step-folder.ts';
import { type AgentCommand, endBySignal, findAgent } from '../agent-process.ts';
import type { AgentStart } from '../files.ts';
import type { AgentHost, StartRequest } from '../host.ts';
import { fillCommand, holeValues, layOut } from '../render-adapter.ts';
import { AcpAgent, READY } from './agent.ts';
import type { SessionChoice } from './handshake.ts';
import { PIPE, PIPE_OPEN } from './once-writer.ts';
import { OWN_SERVER } from './permission.ts';
import { fields, isBoolean, isText, nullable } from '../../../base/shape.ts';

export interface AcpHostOptions extends DriverContext {
  readonly adapter: Adapter;
  /** Resolves when every message that agents have left for the run so far has been handled. */
  readonly heard: () => Promise<void>;
}

export function acpHost(options: AcpHostOptions): AgentHost {
  const { adapter, files, heard } = options;
  const { signal } = present(adapter.acp, `the adapter ${adapter.name} has no acp`);
  /** One object for each agent, because its pipe must have one writer. */
  const known = new Map<string, AcpAgent>();

  const agentOf = (start: AgentStart, choice: SessionChoice): AcpAgent => {
    const mcpServers = serversFor(start, options);
    const agent = new AcpAgent(start, { adapter, files, secrets: options.secrets, choice, mcpServers, heard });
    known.set(start.marker, agent);
    void agent.ended.then(() => {
      if (known.get(start.marker) === agent) known.delete(start.marker);
    });
    return agent;
  };

  const adopt = (start: AgentStart): AcpAgent => {
    const { path } = start.folder;
    const choice = readRecord(join(path, CHOICE), isChoice);
    const agent = agentOf(start, choice ?? { resumeSession: null, forks: false });
    agent.begin(null);
    return agent;
  };

  return {
    start: (request) => {
      const { resumeSession, forks } = request;
      const choice = { resumeSession, forks };
      const agent = agentOf(request.start, choice);
      const command = prepareStart(request, choice, options);
      if (command.ok) agent.begin(command.value);
      else agent.process.refuse(command.error);
      return agent;
    },
    find: (start) => findAgent(start, READY, () => known.get(start.marker) ?? adopt(start)),
    clear: (start, graceMs) => endBySignal(signal, start, graceMs),
  };
}

const isChoice = fields<SessionChoice>({ resumeSession: nullable(isText), forks: isBoolean });

/** In the folder of a start. */
const CHOICE = 'acp-wish';

function prepareStart(
  { start, environment, resumeSession, args }: StartRequest,
  choice: SessionChoice,
  options: AcpHostOptions,
): Result<AgentCommand, string> {
  const { adapter } = options;
  const { path } = start.folder;
  const shell = findShell('sh', `${environment['PATH'] ?? ''}:/bin:/usr/bin`);
  if (shell === null) return err('there is no shell sh on PATH');
  const values = {
    ...holeValues(adapter, options, start),
    ...(resumeSession === null ? {} : { session_id: resumeSession }),
  };
  const command = fillCommand([present(adapter.acp, 'an adapter without acp').command, args], values);
  if (!command.ok) return command;
  if (command.value.includes('\0')) return err('its command contains a NUL byte, which no shell can read');
  const laidOut = unlessRefused(() => {
    makeFolder(path);
    const made = layOut(adapter, values, options.environment);
    if (made.ok) writeJsonFile(join(path, CHOICE), choice);
    return made;
  });
  if (!laidOut.ok) return laidOut;
  const script = withPipe(command.value, path);
  return ok({ shell, command: [shell.path, '-c', script, shell.name], environment });
}

/** A shell that holds both ends of the pipe open while the command runs, and survives the signals that end the command. */
function withPipe(command: string, folder: string): string {
  const [pipe, open] = [shellWord(join(folder, PIPE)), shellWord(join(folder, PIPE_OPEN))];
  return [
    'trap : HUP INT QUIT TERM',
    `mkfifo -m 600 ${pipe} && exec 4<>${pipe} <${pipe} && : >${open} || exit 126`,
    `{ ${command}`,
    '} 4<&-',
  ].join('\n');
}

/** The run's own MCP server, which can be reached from any sandbox. */
function serversFor({ agent }: AgentStart, { binFolder, runId, socket, inbox }: AcpHostOptions): readonly McpServer[] {
  if (binFolder === undefined || binFolder === null) return [];
  const args = ['mcp', '--agent', agent, '--workflow', runId, '--socket', socket, '--inbox', inbox];
  return [{ name: OWN_SERVER, command: join(binFolder, 'meow'), args, env: [] }];
}
