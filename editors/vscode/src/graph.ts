// A panel with the graph of a workflow, drawn again whenever one of its files is saved.

import { execFile } from 'node:child_process';
import { basename, dirname } from 'node:path';
import { promisify } from 'node:util';
import { type Disposable, type TextDocument, ViewColumn, type WebviewPanel, window, workspace } from 'vscode';

import { graphPage } from './graph-page.ts';

const run = promisify(execFile);
const TIMEOUT_MS = 30_000;
const BYTES_MAX = 20_000_000;

export class GraphPanel implements Disposable {
  readonly #program: () => string;
  readonly #saving: Disposable;
  #panel: WebviewPanel | null = null;
  #workflow = '';

  constructor(program: () => string) {
    this.#program = program;
    this.#saving = workspace.onDidSaveTextDocument(async () => {
      if (this.#panel?.visible === true && workspace.isTrusted) await this.#draw(this.#panel);
    });
  }

  dispose(): void {
    this.#saving.dispose();
    this.#panel?.dispose();
  }

  /** Of the file in the active editor. */
  async show(): Promise<void> {
    const document = window.activeTextEditor?.document;
    if (document === undefined || document.uri.scheme !== 'file') {
      void window.showWarningMessage('Open a workflow first: a *.meow.toml, a Raymond prompt or a Conductor file.');
      return;
    }
    this.#workflow = workflowOf(document);
    this.#panel ??= this.#open();
    this.#panel.reveal(undefined, true);
    await this.#draw(this.#panel);
  }

  #open(): WebviewPanel {
    const column = { viewColumn: ViewColumn.Beside, preserveFocus: true };
    const panel = window.createWebviewPanel('meow.graph', 'Graph', column, {
      enableScripts: false,
      enableForms: false,
      localResourceRoots: [],
    });
    panel.onDidDispose(() => {
      this.#panel = null;
    });
    return panel;
  }

  async #draw(panel: WebviewPanel): Promise<void> {
    const path = this.#workflow;
    panel.title = `Graph of ${basename(path)}`;
    try {
      const { stdout } = await run(this.#program(), ['graph', path, '--format', 'svg'], {
        cwd: dirname(path),
        timeout: TIMEOUT_MS,
        maxBuffer: BYTES_MAX,
      });
      panel.webview.html = graphPage({ svg: stdout });
    } catch (error) {
      const { stderr = '', message = String(error) } = error as { readonly stderr?: string; readonly message?: string };
      panel.webview.html = graphPage({ problem: stderr.trim() || message });
    }
  }
}

/** A prompt or a script stands for its folder. */
function workflowOf({ fileName }: TextDocument): string {
  const isPart = /\.(?:md|sh)$/i.test(fileName) || basename(fileName) === 'workflow.yaml';
  return isPart ? dirname(fileName) : fileName;
}
