// Language server on two streams. The official library speaks the protocol; this file maps questions about positions to
// functions of app/editor.ts, and its answers back. Entry of a bundle of its own, which `meow lsp` loads.
//
// Problems are published a moment after the last change, for all files of a workflow. An open file shows what
// `meow validate` would report for it; a file that is not open, what the open workflows that refer to it find there.

import { basename, dirname, join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath, pathToFileURL } from 'node:url';
import {
  type CodeAction,
  CodeActionKind,
  type CodeActionParams,
  type CompletionItem,
  CompletionItemKind,
  createConnection,
  DidChangeWatchedFilesNotification,
  type Diagnostic as ShownDiagnostic,
  DiagnosticSeverity,
  type DocumentSymbol,
  ErrorCodes,
  type InitializeParams,
  type InitializeResult,
  type Location,
  type Range,
  ResponseError,
  StreamMessageReader,
  StreamMessageWriter,
  SymbolKind as ShownKind,
  type TextDocumentEdit,
  type TextDocumentPositionParams,
  TextDocuments,
  TextDocumentSyncKind,
  type TextEdit,
  type WorkspaceEdit,
} from 'vscode-languageserver/node';
import { TextDocument } from 'vscode-languageserver-textdocument';

import {
  type Definition,
  EditorWorkspace,
  type FoundProblem,
  type Suggestion,
  type SymbolAt,
  type SymbolKind,
} from '../app/editor.ts';
import { present } from '../base/errors.ts';
import type { Place } from '../base/source.ts';
import { quickFix } from './quick-fix.ts';

export interface LspOptions {
  readonly version: string;
  readonly input: Readable;
  readonly output: Writable;
}

/** Typing pauses this long before problems are looked for. */
const QUIET_MS = 60;

/** Files whose changes on disk matter: workflows, prompts, scripts, the configuration, and where validators are found. */
const WATCHED = {
  watchers: [{ globPattern: '**/*.{toml,yaml,yml,md,sh}' }, { globPattern: '**/{package.json,*akefile}' }],
};

/** Resolves when the input has ended. */
export function serveLsp({ version, input, output }: LspOptions): Promise<void> {
  const reader = new StreamMessageReader(input);
  // Its timer for incomplete messages would keep the process alive after the editor has died in the middle of one.
  reader.partialMessageTimeout = 0;
  const connection = createConnection(reader, new StreamMessageWriter(output));
  const documents = new TextDocuments(TextDocument);
  const server = new Server(documents, {
    publish: (uri, diagnostics) => connection.sendDiagnostics({ uri, diagnostics }),
    // An editor must not lose its server because of one text.
    failed: (error) =>
      connection.console.error(error instanceof Error ? (error.stack ?? error.message) : String(error)),
  });
  connection.onInitialize((params) => server.initialize(params, version));
  connection.onInitialized(() => {
    if (server.canWatchFiles) void connection.client.register(DidChangeWatchedFilesNotification.type, WATCHED);
  });
  documents.onDidOpen(({ document }) => server.opened(document.uri));
  documents.onDidChangeContent(({ document }) => server.changed(document.uri));
  documents.onDidSave(() => server.saved());
  documents.onDidClose(({ document }) => server.closed(document.uri));
  connection.onDidChangeWatchedFiles(() => server.saved());
  connection.onCompletion((params) => server.complete(params));
  connection.onHover((params) => server.hover(params));
  connection.onDefinition((params) => server.define(params));
  connection.onReferences((params) => server.findUses(params, params.context.includeDeclaration));
  connection.onPrepareRename((params) => server.prepareRename(params));
  connection.onRenameRequest((params) => server.rename(params, params.newName));
  connection.onDocumentSymbol(({ textDocument }) => server.outline(textDocument.uri));
  connection.onCodeAction((params) => server.fixes(params));
  documents.listen(connection);
  connection.listen();
  return new Promise((resolve) => {
    input.once('end', resolve);
    input.once('close', resolve);
  });
}

interface Client {
  readonly publish: (uri: string, diagnostics: ShownDiagnostic[]) => Promise<void>;
  readonly failed: (error: unknown) => void;
}

class Server {
  readonly #documents: TextDocuments<TextDocument>;
  readonly #client: Client;
  /** The first is also that of files outside of all folders. */
  #workspaces: readonly (readonly [folder: string, EditorWorkspace])[];
  #canRenameFiles = false;
  #canChangeDocuments = false;
  #timer: NodeJS.Timeout | null = null;
  /** URIs of open files as the client spells them, by path: there are several spellings. */
  readonly #uris = new Map<string, string>();
  /** Files whose problems were published, in order to clear them. */
  #published = new Set<string>();
  canWatchFiles = false;

  constructor(documents: TextDocuments<TextDocument>, client: Client) {
    this.#documents = documents;
    this.#client = client;
    this.#workspaces = [this.#open(process.cwd())];
  }

  initialize({ rootUri, workspaceFolders, capabilities }: InitializeParams, version: string): InitializeResult {
    const uris = workspaceFolders?.map(({ uri }) => uri) ?? (rootUri === null ? [] : [rootUri]);
    const folders = uris.flatMap((uri) => pathOf(uri) ?? []);
    if (folders.length > 0) this.#workspaces = folders.map((folder) => this.#open(folder));
    const { workspaceEdit, didChangeWatchedFiles } = capabilities.workspace ?? {};
    this.#canChangeDocuments = workspaceEdit?.documentChanges === true;
    this.#canRenameFiles = this.#canChangeDocuments && workspaceEdit?.resourceOperations?.includes('rename') === true;
    this.canWatchFiles = didChangeWatchedFiles?.dynamicRegistration === true;
    return {
      serverInfo: { name: 'meow', version },
      capabilities: {
        textDocumentSync: { openClose: true, change: TextDocumentSyncKind.Incremental, save: true },
        completionProvider: { triggerCharacters: ['{', '.', '"', "'", '<', '>', '[', ' '] },
        hoverProvider: true,
        definitionProvider: true,
        referencesProvider: true,
        renameProvider: { prepareProvider: true },
        documentSymbolProvider: true,
        codeActionProvider: { codeActionKinds: [CodeActionKind.QuickFix] },
      },
    };
  }

  opened(uri: string): void {
    const path = pathOf(uri);
    if (path !== null) this.#uris.set(path, uri);
  }

  closed(uri: string): void {
    const path = pathOf(uri);
    // The client may already have opened it by another URI.
    if (path !== null && this.#uris.get(path) === uri) this.#uris.delete(path);
    this.saved();
  }

  changed(uri: string): void {
    const path = pathOf(uri) ?? uri;
    for (const [, workspace] of this.#workspaces) workspace.changed(path);
    this.#showLater();
  }

  #showLater(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      try {
        this.#showProblems();
      } catch (error) {
        this.#client.failed(error);
      }
    }, QUIET_MS);
  }

  saved(): void {
    for (const [, workspace] of this.#workspaces) workspace.saved();
    this.#showLater();
  }

  complete(params: TextDocumentPositionParams): CompletionItem[] {
    const { path, offset, workspace } = this.#at(params);
    const found = workspace.suggest(path, offset);
    if (found === null) return [];
    const range = this.#range(path, found.place);
    const isAssigned = /^[ \t]*[=:]/.test(
      this.#document(path)
        .getText()
        .slice(found.place.to, found.place.to + LINE_PART),
    );
    const afterKey = isAssigned ? '' : path.endsWith('.toml') ? ' = ' : ': ';
    return found.items.map(({ label, kind, detail }) => {
      const newText = found.needsQuotes ? `"${label}"` : kind === 'key' ? `${label}${afterKey}` : label;
      return { label, detail, kind: COMPLETION_KINDS[kind], filterText: newText, textEdit: { range, newText } };
    });
  }

  hover(params: TextDocumentPositionParams) {
    const { path, offset, workspace } = this.#at(params);
    const found = workspace.symbolAt(path, offset);
    const key = found === null ? workspace.keyAt(path, offset) : null;
    const place = found?.place ?? key?.place;
    if (place === undefined) return null;
    const texts = found?.definitions.map(({ about }) => about) ?? [key?.about ?? ''];
    const value = texts.join('\n\n---\n\n');
    return { contents: { kind: 'markdown' as const, value }, range: this.#range(path, place) };
  }

  define(params: TextDocumentPositionParams): Location[] {
    const { path, offset, workspace } = this.#at(params);
    const found = workspace.symbolAt(path, offset);
    return found?.definitions.map(({ file, place }) => this.#location(file, place)) ?? [];
  }

  findUses(params: TextDocumentPositionParams, withDefinition: boolean): Location[] {
    const { path, offset, workspace } = this.#at(params);
    const found = workspace.symbolAt(path, offset);
    if (found === null) return [];
    const uses = workspace.usesOf(path, found.definitions);
    return [...(withDefinition ? found.definitions : []), ...uses].map(({ file, place }) =>
      this.#location(file, place),
    );
  }

  prepareRename(params: TextDocumentPositionParams): Range | null {
    const { path, offset, workspace } = this.#at(params);
    const found = workspace.symbolAt(path, offset);
    return found === null || !isRenamable(found) ? null : this.#range(path, found.place);
  }

  rename(params: TextDocumentPositionParams, name: string): WorkspaceEdit | ResponseError | null {
    const { path, offset, workspace } = this.#at(params);
    const found = workspace.symbolAt(path, offset);
    if (found === null || !isRenamable(found)) return null;
    const files = found.definitions.filter(({ isFile }) => isFile);
    const full = (definition: Definition): string =>
      /\.\w+$/.test(name) ? name : `${name}${endingOf(definition.name)}`;
    const [first] = files;
    const wanted = first === undefined ? name : full(first);
    const problem = this.#renameProblem(workspace, found.definitions, wanted);
    if (problem !== null) return new ResponseError(ErrorCodes.InvalidParams, problem);
    const edits = new Map<string, TextDocumentEdit>();
    for (const { path: file, place, text } of workspace.renamed(path, found.definitions, wanted)) {
      const uri = this.#uriOf(file);
      const version = this.#documents.get(uri)?.version ?? null;
      const edit = edits.get(uri) ?? { textDocument: { uri, version }, edits: [] };
      edit.edits.push({ range: this.#range(file, place), newText: text });
      edits.set(uri, edit);
    }
    const moves = files.map(({ file }) => {
      return { kind: 'rename' as const, oldUri: this.#uriOf(file), newUri: this.#uriOf(join(dirname(file), wanted)) };
    });
    if (this.#canChangeDocuments) return { documentChanges: [...edits.values(), ...moves] };
    return { changes: Object.fromEntries([...edits].map(([uri, each]) => [uri, each.edits as TextEdit[]])) };
  }

  #renameProblem(workspace: EditorWorkspace, definitions: readonly Definition[], name: string): string | null {
    const [definition] = definitions;
    if (definition === undefined) return 'nothing to rename';
    if (!/^[\w-]+(?:\.\w+)?$/.test(name) || (definition.kind !== 'state' && name.includes('.')))
      return `"${name}" is not a valid name: names are made of letters, digits, - and _`;
    if (definition.isFile && !this.#canRenameFiles) return 'this state is a file, and the editor cannot rename files';
    const { kind, file, parent } = definition;
    const others = definition.isFile ? [] : workspace.definitionsIn(file);
    const isTaken = definition.isFile
      ? workspace.textOf(join(dirname(file), name)) !== null
      : others.some((other) => other.kind === kind && other.parent === parent && other.name === name);
    return isTaken ? `there is already a ${kind} "${name}"` : null;
  }

  outline(uri: string): DocumentSymbol[] {
    const path = pathOf(uri);
    if (path === null) return [];
    const definitions = this.#workspaceOf(path).definitionsIn(path);
    const below = (parent: Definition | null): DocumentSymbol[] =>
      definitions
        .filter((each) => each.parent === parent)
        .map((each) => {
          const children = below(each);
          return {
            name: each.name,
            kind: OUTLINE_KINDS[each.kind],
            selectionRange: this.#range(path, each.place),
            range: this.#range(path, {
              from: Math.min(each.extent.from, each.place.from),
              to: Math.max(each.extent.to, each.place.to),
            }),
            children,
          };
        });
    return below(null);
  }

  fixes({ textDocument, context }: CodeActionParams): CodeAction[] {
    const document = this.#documents.get(textDocument.uri);
    if (document === undefined) return [];
    return context.diagnostics.flatMap((diagnostic): CodeAction[] => {
      const { hint } = (diagnostic.data ?? {}) as { readonly hint?: string };
      const { range } = diagnostic;
      const fix = hint === undefined ? null : quickFix(document.getText(range), textOf(diagnostic.message), hint);
      if (fix === null) return [];
      const changes = { [textDocument.uri]: [{ range, newText: fix.text }] };
      return [{ title: fix.title, kind: CodeActionKind.QuickFix, diagnostics: [diagnostic], edit: { changes } }];
    });
  }

  #showProblems(): void {
    const open = [...this.#uris.keys()];
    const workflows = new Map(open.map((path) => [path, this.#workspaceOf(path).workflowOf(path)]));
    const problems = new Map<string, readonly FoundProblem[]>();
    for (const [path, workflow] of workflows) {
      if (workflow !== null && !problems.has(workflow))
        problems.set(workflow, this.#workspaceOf(path).problemsOf(workflow));
    }
    const shown = new Map<string, ShownDiagnostic[]>(open.map((path) => [path, []]));
    for (const [workflow, found] of problems) {
      for (const problem of found) {
        // An open workflow speaks for its own files.
        const owner = workflows.get(problem.path);
        if (owner !== undefined && owner !== null && owner !== workflow) continue;
        shown.set(problem.path, [...(shown.get(problem.path) ?? []), this.#shown(problem)]);
      }
    }
    for (const path of this.#published) if (!shown.has(path)) shown.set(path, []);
    for (const [path, diagnostics] of shown) void this.#client.publish(this.#uriOf(path), diagnostics);
    this.#published = new Set([...shown].filter(([, diagnostics]) => diagnostics.length > 0).map(([path]) => path));
  }

  #shown({ path, place, diagnostic, related }: FoundProblem): ShownDiagnostic {
    const { severity, code, message, hint } = diagnostic;
    return {
      range: this.#range(path, place),
      severity: severity === 'error' ? DiagnosticSeverity.Error : DiagnosticSeverity.Warning,
      code,
      source: 'meow',
      message,
      data: { hint },
      relatedInformation: [...(hint === null ? [] : [{ path, place, message: `hint: ${hint}` }]), ...related].map(
        (each) => ({ location: this.#location(each.path, each.place), message: each.message }),
      ),
    };
  }

  #open(folder: string): readonly [folder: string, EditorWorkspace] {
    const textOf = (path: string): string | null => {
      const uri = this.#uris.get(path);
      return uri === undefined ? null : (this.#documents.get(uri)?.getText() ?? null);
    };
    return [folder, new EditorWorkspace(folder, { textOf, paths: () => [...this.#uris.keys()] })];
  }

  /** The innermost folder that contains the file. */
  #workspaceOf(path: string): EditorWorkspace {
    const around = this.#workspaces.filter(([folder]) => path.startsWith(`${folder}/`));
    const [, workspace] = present(
      around.toSorted(([a], [b]) => b.length - a.length)[0] ?? this.#workspaces[0],
      'there is at least one workspace',
    );
    return workspace;
  }

  #at({ textDocument, position }: TextDocumentPositionParams): Position {
    // A file that is only in the editor is no part of a workflow: nothing is found in it.
    const path = pathOf(textDocument.uri) ?? textDocument.uri;
    return { path, offset: this.#document(path).offsetAt(position), workspace: this.#workspaceOf(path) };
  }

  #range(path: string, { from, to }: Place): Range {
    const document = this.#document(path);
    return { start: document.positionAt(from), end: document.positionAt(to) };
  }

  #location(path: string, place: Place): Location {
    return { uri: this.#uriOf(path), range: this.#range(path, place) };
  }

  #document(path: string): TextDocument {
    const uri = this.#uriOf(path);
    return this.#documents.get(uri) ?? TextDocument.create(uri, '', 0, this.#workspaceOf(path).textOf(path) ?? '');
  }

  #uriOf(path: string): string {
    return this.#uris.get(path) ?? pathToFileURL(path).href;
  }
}

interface Position {
  readonly path: string;
  readonly offset: number;
  readonly workspace: EditorWorkspace;
}

/** Long enough for what follows a key. */
const LINE_PART = 20;

/** The path of another file is not renamed from where it is named. */
function isRenamable({ definitions }: SymbolAt): boolean {
  return definitions.every(({ kind }) => kind !== 'file');
}

const COMPLETION_KINDS: Readonly<Record<Suggestion['kind'], CompletionItemKind>> = {
  workflow: CompletionItemKind.Module,
  step: CompletionItemKind.Function,
  variable: CompletionItemKind.Variable,
  output: CompletionItemKind.Field,
  state: CompletionItemKind.Function,
  file: CompletionItemKind.File,
  key: CompletionItemKind.Property,
  value: CompletionItemKind.EnumMember,
};

const OUTLINE_KINDS: Readonly<Record<SymbolKind, ShownKind>> = {
  workflow: ShownKind.Module,
  step: ShownKind.Function,
  variable: ShownKind.Variable,
  output: ShownKind.Field,
  state: ShownKind.Function,
  file: ShownKind.File,
};

/** Null if it is not a local file. */
function pathOf(uri: string): string | null {
  try {
    return uri.startsWith('file:') ? fileURLToPath(uri) : null;
  } catch (error) {
    // A host, a slash that is encoded, or not a URI at all.
    if (error instanceof TypeError || error instanceof URIError) return null;
    throw error;
  }
}

function endingOf(name: string): string {
  return /\.[^.]*$/.exec(basename(name))?.[0] ?? '';
}

function textOf(message: ShownDiagnostic['message']): string {
  return typeof message === 'string' ? message : message.value;
}
