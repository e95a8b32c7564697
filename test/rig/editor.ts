// An editor as the language server sees it: opens buffers, types, and asks.

import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  type CodeAction,
  type CompletionItem,
  createProtocolConnection,
  type Diagnostic,
  type DocumentSymbol,
  type Hover,
  type Location,
  type LogMessageParams,
  type Position,
  type ProtocolConnection,
  type PublishDiagnosticsParams,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
  type TextEdit,
  type WorkspaceEdit,
} from 'vscode-languageserver/node';
import { TextDocument } from 'vscode-languageserver-textdocument';

import { MEOW, type Rig } from './rig.ts';

/** Marks the cursor in a text. */
export const CURSOR = '¦';

export class Editor implements AsyncDisposable {
  readonly #rig: Rig;
  readonly #process: ChildProcess;
  readonly #connection: ProtocolConnection;
  readonly #buffers = new Map<string, TextDocument>();
  readonly #shown = new Map<string, PublishDiagnosticsParams>();
  #noticed: () => void = () => undefined;
  #spelled: (uri: string) => string = (uri) => uri;

  private constructor(rig: Rig) {
    this.#rig = rig;
    this.#process = spawn(MEOW, ['lsp', '--stdio'], {
      cwd: rig.folder,
      env: rig.environment,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const { stdin, stdout } = this.#process;
    if (stdin === null || stdout === null) throw new Error('no pipes');
    this.#connection = createProtocolConnection(new StreamMessageReader(stdout), new StreamMessageWriter(stdin));
    this.#connection.onNotification('textDocument/publishDiagnostics', (shown: PublishDiagnosticsParams) => {
      this.#shown.set(shown.uri, shown);
      this.#noticed();
    });
    this.#connection.onNotification(
      'window/logMessage',
      ({ message }: LogMessageParams) => void this.log.push(message),
    );
    this.#connection.listen();
  }

  static async start(rig: Rig): Promise<Editor> {
    const editor = new Editor(rig);
    const workspaceEdit = { documentChanges: true, resourceOperations: ['rename'] };
    await editor.#connection.sendRequest('initialize', {
      processId: process.pid,
      rootUri: pathToFileURL(rig.folder).href,
      capabilities: { workspace: { workspaceEdit } },
    });
    await editor.#connection.sendNotification('initialized', {});
    return editor;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = new Promise((resolve) => this.#process.once('close', resolve));
    await this.#connection.sendRequest('shutdown');
    await this.#connection.sendNotification('exit');
    await ended;
    this.#connection.dispose();
  }

  uri(file: string): string {
    return this.#spelled(pathToFileURL(join(this.#rig.folder, file)).href);
  }

  /** From now on every URI is spelled in this way, as another editor spells them. */
  spell(spelled: (uri: string) => string): void {
    this.#spelled = spelled;
  }

  /** Sends a request as it is. The answer may be an error. */
  async request(method: string, params: unknown): Promise<unknown> {
    try {
      return await this.#connection.sendRequest(method, params);
    } catch (error) {
      if (error instanceof ResponseError) return error;
      throw error;
    }
  }

  async notify(method: string, params: unknown): Promise<void> {
    await this.#connection.sendNotification(method, params);
  }

  /** What the server wrote to the editor's log. */
  readonly log: string[] = [];

  /** Opens a buffer, or replaces its text. Returns the position of the cursor, if the text has one. */
  async type(file: string, written: string): Promise<Position> {
    const uri = this.uri(file);
    const text = written.replace(CURSOR, '');
    const known = this.#buffers.get(file);
    const version = (known?.version ?? 0) + 1;
    const document = TextDocument.create(uri, 'meow', version, text);
    this.#buffers.set(file, document);
    this.#shown.delete(uri);
    await (known === undefined
      ? this.#connection.sendNotification('textDocument/didOpen', {
          textDocument: { uri, languageId: 'meow', version, text },
        })
      : this.#connection.sendNotification('textDocument/didChange', {
          textDocument: { uri, version },
          contentChanges: [{ text }],
        }));
    return document.positionAt(Math.max(0, written.indexOf(CURSOR)));
  }

  /** Of the newest text. */
  async problems(file: string): Promise<readonly Diagnostic[]> {
    for (;;) {
      const shown = this.#shown.get(this.uri(file));
      if (shown !== undefined) return shown.diagnostics;
      await new Promise<void>((resolve) => {
        this.#noticed = resolve;
      });
    }
  }

  async complete(file: string, written: string): Promise<readonly string[]> {
    const items = await this.#ask<CompletionItem[]>('completion', file, await this.type(file, written));
    return items.map(({ label }) => label);
  }

  async hover(file: string, position: Position): Promise<string | null> {
    const hover = await this.#ask<Hover | null>('hover', file, position);
    return hover === null ? null : (hover.contents as { value: string }).value;
  }

  /** As `FILE:LINE:COLUMN`, from 1. */
  async definition(file: string, position: Position): Promise<readonly string[]> {
    return this.#places(await this.#ask<Location[]>('definition', file, position));
  }

  async references(file: string, position: Position): Promise<readonly string[]> {
    const context = { includeDeclaration: true };
    return this.#places(await this.#ask<Location[]>('references', file, position, { context }));
  }

  async outline(file: string): Promise<readonly DocumentSymbol[]> {
    return this.#connection.sendRequest('textDocument/documentSymbol', { textDocument: { uri: this.uri(file) } });
  }

  async fixes(file: string): Promise<readonly CodeAction[]> {
    const diagnostics = await this.problems(file);
    const textDocument = { uri: this.uri(file) };
    const range = { start: { line: 0, character: 0 }, end: { line: 9_999, character: 0 } };
    return this.#connection.sendRequest('textDocument/codeAction', { textDocument, range, context: { diagnostics } });
  }

  async rename(file: string, position: Position, newName: string): Promise<WorkspaceEdit> {
    return this.#ask('rename', file, position, { newName });
  }

  /** The text of a file after an edit. */
  edited(file: string, { documentChanges = [], changes = {} }: WorkspaceEdit): string {
    const uri = this.uri(file);
    const ofDocument = documentChanges.flatMap((change) =>
      'edits' in change && change.textDocument.uri === uri ? (change.edits as TextEdit[]) : [],
    );
    const document = this.#buffers.get(file) ?? TextDocument.create(uri, '', 0, this.#rig.read(file));
    return TextDocument.applyEdits(document, [...ofDocument, ...(changes[uri] ?? [])]);
  }

  #ask<T>(method: string, file: string, position: Position, more: object = {}): Promise<T> {
    return this.#connection.sendRequest(`textDocument/${method}`, {
      textDocument: { uri: this.uri(file) },
      position,
      ...more,
    });
  }

  #places(locations: readonly Location[]): readonly string[] {
    const folder = `${pathToFileURL(this.#rig.folder).href}/`;
    return locations.map(
      ({ uri, range: { start } }) => `${uri.replace(folder, '')}:${start.line + 1}:${start.character + 1}`,
    );
  }
}
