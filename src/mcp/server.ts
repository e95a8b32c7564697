// MCP server with tools only, on two streams. The official SDK speaks the protocol; this file checks arguments and lifetime.
//
// - A tool answers with text only: a client that also gets structured data shows the model that instead of the text.
// - Requests run side by side. A cancelled request is aborted and gets no response, and neither does one in flight when the
//   input ends.
// - Lines that are not messages are ignored, as the SDK does. A line that does not fit into the buffer ends the server.

import type { Readable, Writable } from 'node:stream';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import type { CallToolResult, ToolAnnotations } from '@modelcontextprotocol/sdk/types.js';
import { CallToolRequestSchema, ErrorCode, ListToolsRequestSchema, McpError } from '@modelcontextprotocol/sdk/types.js';

import type { Result } from '../base/errors.ts';
import { isJsonMap, type JsonMap, own } from '../base/json.ts';
import { crash, isErrno } from '../sys/errors.ts';

export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly fields: Readonly<Record<string, Field>>;
  /** Hints for deciding whether it may be called. */
  readonly annotations: ToolAnnotations;
  /** `input` has passed the check of the fields. Both results are for the model to read. */
  perform(input: JsonMap, signal: AbortSignal): Promise<Result<string, string>>;
}

export interface Field {
  readonly type: 'string' | 'object';
  readonly required?: boolean;
  readonly description: string;
}

export interface McpOptions {
  readonly version: string;
  /** Instructions for the model about all tools together. */
  readonly instructions: string;
  readonly tools: readonly Tool[];
  readonly input: Readable;
  readonly output: Writable;
}

/** A message to a run is smaller; JSON may quote a character with six. */
const BUFFER_BYTES_MAX = 16 * 1024 * 1024;
const SHOWN_MAX = 100;

/** Resolves when the input has ended and every call in flight has settled. */
export async function serveMcp({ version, instructions, tools, input, output }: McpOptions): Promise<void> {
  const calls = new Set<Promise<CallToolResult>>();
  const server = new Server({ name: 'meow', title: 'MEOW', version }, { capabilities: { tools: {} }, instructions });
  const closed = new Promise<void>((resolve) => {
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the SDK takes one handler, by assignment
    server.onclose = resolve;
  });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: tools.map(declarationOf) }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    const tool = tools.find(({ name }) => name === params.name);
    if (tool === undefined) {
      const names = tools.map(({ name }) => name).join(', ');
      const shown = JSON.stringify(params.name.slice(0, SHOWN_MAX));
      throw new McpError(ErrorCode.InvalidParams, `unknown tool ${shown}; available: ${names}`);
    }
    // The SDK has parsed the arguments from JSON.
    const call = callTool(tool, (params.arguments ?? {}) as JsonMap, signal);
    calls.add(call);
    // The SDK would answer with the message of the exception. A bug must end the program.
    return call
      .catch((error: unknown) => {
        crash(error);
        throw error;
      })
      .finally(() => calls.delete(call));
  });
  await server.connect(new StdioServerTransport(input, output, { maxBufferSize: BUFFER_BYTES_MAX }));
  await Promise.race([endOf(input), closed]);
  await server.close();
  await Promise.all(calls);
}

async function callTool(tool: Tool, input: JsonMap, signal: AbortSignal): Promise<CallToolResult> {
  // An error of the protocol may never reach the model, so what the model can fix is a result.
  const problem = signal.aborted ? 'cancelled' : inputProblem(tool, input);
  if (problem !== null) return textResult(`${tool.name}: ${problem}`, true);
  const result = await tool.perform(input, signal);
  return result.ok ? textResult(result.value, false) : textResult(result.error, true);
}

function textResult(text: string, isError: boolean): CallToolResult {
  return { content: [{ type: 'text', text }], isError };
}

function declarationOf({ name, title, description, annotations, fields }: Tool) {
  const entries = Object.entries(fields);
  const properties = entries.map(([field, { type, description: about }]) => [
    field,
    { type, description: about, ...(type === 'object' ? { additionalProperties: true } : {}) },
  ]);
  return {
    name,
    title,
    description,
    inputSchema: {
      type: 'object' as const,
      properties: Object.fromEntries(properties) as Record<string, object>,
      required: entries.filter(([, { required }]) => required === true).map(([field]) => field),
      additionalProperties: false,
    },
    annotations: { title, ...annotations },
  };
}

/** A sentence; null if the input is valid. */
function inputProblem({ fields }: Tool, input: JsonMap): string | null {
  const known = Object.keys(fields);
  const unknown = Object.keys(input).find((name) => !known.includes(name));
  if (unknown !== undefined) return `unknown argument ${JSON.stringify(unknown)}; available: ${known.join(', ')}`;
  for (const [name, { type, required }] of Object.entries(fields)) {
    // Some clients send null for an argument that is left out.
    const value = own(input, name) ?? null;
    if (value === null && required) return `the argument ${name} is missing`;
    const fits = value === null || (type === 'object' ? isJsonMap(value) : typeof value === 'string');
    if (!fits) return `the argument ${name} must be ${type === 'object' ? 'an object' : 'a string'}`;
  }
  return null;
}

/** Ended by the other side, destroyed by us, or cut off. */
function endOf(input: Readable): Promise<void> {
  return new Promise((resolve, reject) => {
    input.once('end', resolve);
    input.once('close', resolve);
    input.once('error', (error) => (isErrno(error, 'EIO', 'ECONNRESET') ? resolve() : reject(error)));
  });
}
