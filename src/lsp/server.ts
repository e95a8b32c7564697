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
  type WorkspaceEdit,
} from 'vscode-languageserver/node';
import { TextDocument } from 'vscode-languageserver-textdocument';

import {
  type Definition,
  EditorWorkspace,
  type FoundProblem,
  type Suggestion,
  type SymbolKind,
} from '../app/editor.ts';
import type { Place } from '../base/source.ts';
import { quickFix } from './quick-fix.ts';

export interface LspOptions {
  readonly version: string;
  readonly input: Readable;
  readonly output: Writable;
}

/** Typing pauses this long before problems are looked for. */
const QUIET_MS = 60;

/** Resolves when the input has ended. */
export function serveLsp({ version, input, output }: LspOptions): Promise<void> {
  const connection = createConnection(new StreamMessageReader(input), new StreamMessageWriter(output));
  const documents = new TextDocuments(TextDocument);
  const server = new Server(documents, (uri, diagnostics) => connection.sendDiagnostics({ uri, diagnostics }));
  connection.onInitialize((params) => server.initialize(params, version));
  documents.onDidChangeContent(() => server.changed());
  documents.onDidSave(() => server.saved());
  documents.onDidClose(() => server.saved());
  connection.onDidChangeWatchedFiles(() => server.saved());
  connection.onCompletion((params) => server.complete(params));
  connection.onHover((params) => server.hover(params));
  connection.onDefinition((params) => server.define(params));
  connection.onReferences((params) => server.findUses(params, params.context.includeDeclaration));
  connection.onPrepareRename((params) => server.prepareRename(params));
  connection.onRenameRequest((params) => server.rename(params, params.newName));
  connection.onDocumentSymbol(({ textDocument }) => server.outline(pathOf(textDocument.uri)));
  connection.onCodeAction((params) => server.fixes(params));
  documents.listen(connection);
  connection.listen();
  return new Promise((resolve) => {
    input.once('end', resolve);
    input.once('close', resolve);
  });
}

class Server {
  readonly #documents: TextDocuments<TextDocument>;
  readonly #publish: (uri: string, diagnostics: ShownDiagnostic[]) => Promise<void>;
  #workspace: EditorWorkspace;
  #canRenameFiles = false;
  #timer: NodeJS.Timeout | null = null;
  /** Files whose problems were published, in order to clear them. */
  #published = new Set<string>();

  constructor(
    documents: TextDocuments<TextDocument>,
    publish: (uri: string, diagnostics: ShownDiagnostic[]) => Promise<void>,
  ) {
    this.#documents = documents;
    this.#publish = publish;
    this.#workspace = this.#open(process.cwd());
  }

  initialize({ rootUri, workspaceFolders, capabilities }: InitializeParams, version: string): InitializeResult {
    const folder = workspaceFolders?.[0]?.uri ?? rootUri;
    if (folder?.startsWith('file:') === true) this.#workspace = this.#open(pathOf(folder));
    const edits = capabilities.workspace?.workspaceEdit;
    this.#canRenameFiles = edits?.documentChanges === true && edits.resourceOperations?.includes('rename') === true;
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

  changed(): void {
    this.#workspace.changed();
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#showProblems(), QUIET_MS);
  }

  saved(): void {
    this.#workspace.saved();
    this.changed();
  }

  complete(params: TextDocumentPositionParams): CompletionItem[] {
    const { path, offset } = this.#at(params);
    const found = this.#workspace.suggest(path, offset);
    if (found === null) return [];
    const range = this.#range(path, found.place);
    return found.items.map(({ label, kind, detail }) => {
      const newText = found.needsQuotes
        ? `"${label}"`
        : kind === 'key' && path.endsWith('.toml')
          ? `${label} = `
          : label;
      return { label, detail, kind: COMPLETION_KINDS[kind], filterText: newText, textEdit: { range, newText } };
    });
  }

  hover(params: TextDocumentPositionParams) {
    const { path, offset } = this.#at(params);
    const found = this.#workspace.symbolAt(path, offset);
    const key = found === null ? this.#workspace.keyAt(path, offset) : null;
    const place = found?.place ?? key?.place;
    if (place === undefined) return null;
    const texts = found?.definitions.map(({ about }) => about) ?? [key?.about ?? ''];
    const value = texts.join('\n\n---\n\n');
    return { contents: { kind: 'markdown' as const, value }, range: this.#range(path, place) };
  }

  define(params: TextDocumentPositionParams): Location[] {
    const { path, offset } = this.#at(params);
    const found = this.#workspace.symbolAt(path, offset);
    return found?.definitions.map(({ file, place }) => this.#location(file, place)) ?? [];
  }

  findUses(params: TextDocumentPositionParams, withDefinition: boolean): Location[] {
    const { path, offset } = this.#at(params);
    const found = this.#workspace.symbolAt(path, offset);
    if (found === null) return [];
    const uses = this.#workspace.usesOf(path, found.definitions);
    return [...(withDefinition ? found.definitions : []), ...uses].map(({ file, place }) =>
      this.#location(file, place),
    );
  }

  prepareRename(params: TextDocumentPositionParams): Range | null {
    const { path, offset } = this.#at(params);
    const found = this.#workspace.symbolAt(path, offset);
    return found === null ? null : this.#range(path, found.place);
  }

  rename(params: TextDocumentPositionParams, name: string): WorkspaceEdit | ResponseError | null {
    const { path, offset } = this.#at(params);
    const found = this.#workspace.symbolAt(path, offset);
    if (found === null) return null;
    const files = found.definitions.filter(({ isFile }) => isFile);
    const full = (definition: Definition): string =>
      /\.\w+$/.test(name) ? name : `${name}${endingOf(definition.name)}`;
    const [first] = files;
    const wanted = first === undefined ? name : full(first);
    const problem = this.#renameProblem(found.definitions, wanted);
    if (problem !== null) return new ResponseError(ErrorCodes.InvalidParams, problem);
    const edits = new Map<string, TextDocumentEdit>();
    for (const { path: file, place, text } of this.#workspace.renamed(path, found.definitions, wanted)) {
      const uri = uriOf(file);
      const version = this.#documents.get(uri)?.version ?? null;
      const edit = edits.get(uri) ?? { textDocument: { uri, version }, edits: [] };
      edit.edits.push({ range: this.#range(file, place), newText: text });
      edits.set(uri, edit);
    }
    const moves = files.map(({ file }) => {
      return { kind: 'rename' as const, oldUri: uriOf(file), newUri: uriOf(join(dirname(file), wanted)) };
    });
    return { documentChanges: [...edits.values(), ...moves] };
  }

  #renameProblem(definitions: readonly Definition[], name: string): string | null {
    const [definition] = definitions;
    if (definition === undefined) return 'nothing to rename';
    if (!/^[\w-]+(?:\.\w+)?$/.test(name) || (definition.kind !== 'state' && name.includes('.')))
      return `"${name}" is not a valid name: names are made of letters, digits, - and _`;
    if (definition.isFile && !this.#canRenameFiles) return 'this state is a file, and the editor cannot rename files';
    const { kind, file, parent } = definition;
    const others = definition.isFile ? [] : this.#workspace.definitionsIn(file);
    const isTaken = definition.isFile
      ? this.#workspace.textOf(join(dirname(file), name)) !== null
      : others.some((other) => other.kind === kind && other.parent === parent && other.name === name);
    return isTaken ? `there is already a ${kind} "${name}"` : null;
  }

  outline(path: string): DocumentSymbol[] {
    const definitions = this.#workspace.definitionsIn(path);
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
    const path = pathOf(textDocument.uri);
    const document = this.#document(path);
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
    this.#timer = null;
    const open = this.#documents.all().map(({ uri }) => pathOf(uri));
    const workflows = new Map(open.map((path) => [path, this.#workspace.workflowOf(path)]));
    const problems = new Map<string, readonly FoundProblem[]>();
    for (const workflow of new Set(workflows.values())) {
      if (workflow !== null) problems.set(workflow, this.#workspace.problemsOf(workflow));
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
    for (const [path, diagnostics] of shown) void this.#publish(uriOf(path), diagnostics);
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

  #open(folder: string): EditorWorkspace {
    return new EditorWorkspace(folder, (path) => this.#documents.get(uriOf(path))?.getText() ?? null);
  }

  #at({ textDocument, position }: TextDocumentPositionParams): { readonly path: string; readonly offset: number } {
    const path = pathOf(textDocument.uri);
    return { path, offset: this.#document(path).offsetAt(position) };
  }

  #range(path: string, { from, to }: Place): Range {
    const document = this.#document(path);
    return { start: document.positionAt(from), end: document.positionAt(to) };
  }

  #location(path: string, place: Place): Location {
    return { uri: uriOf(path), range: this.#range(path, place) };
  }

  #document(path: string): TextDocument {
    const uri = uriOf(path);
    return this.#documents.get(uri) ?? TextDocument.create(uri, '', 0, this.#workspace.textOf(path) ?? '');
  }
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

function pathOf(uri: string): string {
  return uri.startsWith('file:') ? fileURLToPath(uri) : uri;
}

function uriOf(path: string): string {
  return pathToFileURL(path).href;
}

function endingOf(name: string): string {
  return /\.[^.]*$/.exec(basename(name))?.[0] ?? '';
}

function textOf(message: ShownDiagnostic['message']): string {
  return typeof message === 'string' ? message : message.value;
}
