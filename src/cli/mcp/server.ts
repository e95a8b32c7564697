// A server of the Model Context Protocol that has tools and nothing else: what a client may ask, and what it is told.
//
// What a tool says is text alone. A client that is also given data shows the model that in place of the text.

import type { Readable } from 'node:stream';
import type { Json, JsonMap } from '../../base/json.ts';
import { isJsonMap } from '../../base/json.ts';
import type { Result } from '../../base/result.ts';
import { err, ok } from '../../base/result.ts';
import type { Refusal } from './json-rpc.ts';
import { INVALID_PARAMS, JsonRpcServer, METHOD_NOT_FOUND } from './json-rpc.ts';
import type { Tool } from './tool.ts';
import { inputProblem, inputSchema } from './tool.ts';

/** The oldest first. None differs in anything that we do. */
const VERSIONS = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'] as const;
const LATEST = VERSIONS[3];

const SHOWN_MAX = 100;

export interface McpOptions {
  /** Of meow. */
  readonly version: string;
  /** What the model is told about all tools together. */
  readonly instructions: string;
  readonly tools: readonly Tool[];
  /** With the line's end. */
  send(line: string): void;
}

export class McpServer {
  readonly #options: McpOptions;
  readonly #wire: JsonRpcServer;

  constructor(options: McpOptions) {
    this.#options = options;
    this.#wire = new JsonRpcServer({
      answer: (method, params, gone) => this.#answer(method, params, gone),
      notified: (method, params) => {
        if (method === 'notifications/cancelled') this.#wire.cancel(params['requestId']);
      },
      send: (line) => options.send(line),
    });
  }

  /** Until the input ends. */
  serve(input: Readable): Promise<void> {
    return this.#wire.serve(input);
  }

  async #answer(method: string, params: JsonMap, gone: AbortSignal): Promise<Result<Json, Refusal>> {
    switch (method) {
      case 'initialize':
        return ok(this.#introduction(params));
      case 'ping':
        return ok({});
      case 'tools/list':
        return ok({ tools: this.#options.tools.map(declarationOf) });
      case 'tools/call':
        return this.#call(params, gone);
      default:
        return err({ code: METHOD_NOT_FOUND, message: `there is no method ${shown(method)}` });
    }
  }

  #introduction({ protocolVersion }: JsonMap): JsonMap {
    const { version, instructions } = this.#options;
    return {
      protocolVersion: VERSIONS.find((known) => known === protocolVersion) ?? LATEST,
      capabilities: { tools: {} },
      serverInfo: { name: 'meow', title: 'MEOW', version },
      instructions,
    };
  }

  async #call({ name, arguments: input = {} }: JsonMap, gone: AbortSignal): Promise<Result<Json, Refusal>> {
    const { tools } = this.#options;
    const tool = tools.find((each) => each.name === name);
    if (tool === undefined) {
      const message = `there is no tool ${shown(name)}: there are ${tools.map((each) => each.name).join(', ')}`;
      return err({ code: INVALID_PARAMS, message });
    }
    if (!isJsonMap(input)) return err({ code: INVALID_PARAMS, message: '"arguments" must be an object' });
    // For the model to mend, which may never see an error of the protocol.
    const problem = inputProblem(tool, input);
    const said = problem === null ? await tool.perform(input, gone) : err(`${tool.name}: ${problem}`);
    const text = said.ok ? said.value : said.error;
    return ok({ content: [{ type: 'text', text }], isError: !said.ok });
  }
}

function declarationOf(tool: Tool): JsonMap {
  const { name, title, description, annotations } = tool;
  return { name, title, description, inputSchema: inputSchema(tool), annotations: { title, ...annotations } };
}

function shown(name: Json | undefined): string {
  return JSON.stringify(typeof name === 'string' ? name.slice(0, SHOWN_MAX) : (name ?? null)).slice(0, SHOWN_MAX);
}
