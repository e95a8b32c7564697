// Host of agents that speak the Agent Client Protocol. Each is a process of its own that reads from a pipe in the folder of
// its start and writes to a file there. It runs without the engine: a shell holds both ends of the pipe open, so that it
// never ends, and the file takes all output. Rules host/1 to host/6.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { McpServer } from '@agentclientprotocol/sdk/unstable';
import { present } from '../../../base/assert.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../../sys/errno.ts';
import { err, ok } from '../../../base/result.ts';
import type { Result } from '../../../base/result.ts';
import type { Adapter } from '../../../ir/adapter.ts';
import { shellWord } from '../../../ir/quote.ts';
import { fillCommand, holeValues, layOut } from '../render-adapter.ts';
import type { HoleValues, Place } from '../render-adapter.ts';
import type { AgentStart } from '../files.ts';
import type { AgentHost, FoundAgent, StartRequest } from '../host.ts';
import { tail } from '../../capture-outputs.ts';
import type { DriverContext } from '../../environment.ts';
import { livingLeader } from '../../session-leader.ts';
import { readExit, readProcess } from '../../step-folder.ts';
import { makeFolder } from '../../../sys/private-file.ts';
import { readJsonFile, writeJsonFile } from '../../../sys/json-file.ts';
import { findShell } from '../../recording-shell.ts';
import { AcpAgent, READY } from './agent.ts';
import type { SessionChoice } from './handshake.ts';
import { endBySignal } from './agent-process.ts';
import type { ProcessRequest } from './agent-process.ts';
import { PIPE, PIPE_OPEN } from './once-writer.ts';
import { OWN_SERVER } from './permission.ts';

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
    const mcpServers = serversFor(holeValues(adapter, options, placeOf(start)));
    const agent = new AcpAgent(start, { adapter, files, choice, mcpServers, heard });
    known.set(start.marker, agent);
    void agent.ended.then(() => {
      if (known.get(start.marker) === agent) known.delete(start.marker);
    });
    return agent;
  };

  return {
    start: (request) => {
      const agent = agentOf(request.start, choiceOf(request));
      const begin = preparedStart(request, options);
      if (begin.ok) agent.begin(begin.value);
      else agent.refuse(begin.error);
      return agent;
    },
    find: (start) => found(start, known.get(start.marker) ?? null, agentOf),
    clear: (start, graceMs) => endBySignal(signal, start, graceMs),
  };
}

function found(
  start: AgentStart,
  known: AcpAgent | null,
  agentOf: (start: AgentStart, choice: SessionChoice) => AcpAgent,
): FoundAgent {
  const { folder, marker } = start;
  // Read once, because it may be written at any moment.
  const record = readProcess(folder);
  if (livingLeader(record, marker) !== null) {
    if (known !== null) return { kind: 'alive', agent: known };
    const choice = readJsonFile(join(folder.path, CHOICE)) as SessionChoice | null;
    const agent = agentOf(start, present(choice, `an agent without a session choice: ${folder.path}`));
    agent.adopt();
    return { kind: 'alive', agent };
  }
  if (record.kind === 'absent') return { kind: 'never' };
  const exit = { status: readExit(folder), refusal: null, output: tail(folder) };
  return { kind: 'gone', wasReady: existsSync(join(folder.path, READY)), exit };
}

/** In the folder of a start. */
const CHOICE = 'acp-wish';

function choiceOf({ resumeSession, forks }: StartRequest): SessionChoice {
  return { resumeSession, forks };
}

/** An error says why the agent cannot be started. */
function preparedStart(request: StartRequest, options: AcpHostOptions): Result<ProcessRequest, string> {
  const { start, environment, resumeSession, args } = request;
  const { adapter } = options;
  const shell = findShell('sh', `${environment['PATH'] ?? ''}:/bin:/usr/bin`);
  if (shell === null) return err('there is no shell sh on PATH');
  const values: HoleValues = {
    ...holeValues(adapter, options, placeOf(start)),
    ...(resumeSession === null ? {} : { session_id: resumeSession }),
  };
  const command = fillCommand([present(adapter.acp, 'an adapter without acp').command, args], values);
  if (!command.ok) return command;
  if (command.value.includes('\0')) return err('its command contains a NUL byte, which no shell can read');
  try {
    makeFolder(start.folder.path);
    const laidOut = layOut(adapter, values, options.environment);
    if (!laidOut.ok) return laidOut;
    writeJsonFile(join(start.folder.path, CHOICE), choiceOf(request));
  } catch (error) {
    if (isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) return err(error.message);
    throw error;
  }
  const script = withPipe(command.value, start.folder.path);
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
function serversFor({ meow, agent, workflow_id, socket, inbox }: HoleValues): readonly McpServer[] {
  if (meow === undefined) return [];
  const flags = { agent, workflow: workflow_id, socket, inbox };
  const args = Object.entries(flags).flatMap(([flag, value]) => (value === undefined ? [] : [`--${flag}`, value]));
  return [{ name: OWN_SERVER, command: meow, args: ['mcp', ...args], env: [] }];
}

function placeOf({ agent, workdir, folder }: AgentStart): Place {
  return { agent, workdir, folder: folder.path };
}
