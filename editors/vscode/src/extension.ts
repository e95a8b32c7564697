// The entry of the extension for VS Code: the client of `meow lsp`, and the command that shows a graph. Nothing is started
// before the workspace is trusted.

import { commands, type ExtensionContext, window, workspace } from 'vscode';
import { LanguageClient, TransportKind } from 'vscode-languageclient/node';

import { GraphPanel } from './graph.ts';

let client: LanguageClient | null = null;

export async function activate({ subscriptions }: ExtensionContext): Promise<void> {
  const graph = new GraphPanel(program);
  subscriptions.push(
    graph,
    commands.registerCommand('meow.showGraph', () => ifTrusted(() => graph.show())),
    commands.registerCommand('meow.restart', () => ifTrusted(restart)),
    workspace.onDidGrantWorkspaceTrust(start),
    workspace.onDidChangeConfiguration(async (change) => {
      if (change.affectsConfiguration('meow.path') && workspace.isTrusted) await restart();
    }),
  );
  if (workspace.isTrusted) await start();
}

export async function deactivate(): Promise<void> {
  await stop();
}

async function start(): Promise<void> {
  if (client !== null) return;
  const server = { command: program(), args: ['lsp'], transport: TransportKind.stdio };
  client = new LanguageClient('meow', 'MEOW', server, {
    documentSelector: ['meow', 'toml', 'yaml', 'markdown', 'shellscript'].map((language) => ({
      scheme: 'file',
      language,
    })),
  });
  try {
    await client.start();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    client = null;
    void window.showErrorMessage(`MEOW cannot start ${program()} lsp: ${reason}. Set meow.path to the path of meow.`);
  }
}

async function stop(): Promise<void> {
  const running = client;
  client = null;
  await running?.dispose();
}

async function restart(): Promise<void> {
  await stop();
  await start();
}

async function ifTrusted(act: () => Promise<void>): Promise<void> {
  if (workspace.isTrusted) await act();
  else void window.showWarningMessage('MEOW starts no program in a workspace that you do not trust.');
}

function program(): string {
  return workspace.getConfiguration('meow').get<string>('path')?.trim() || 'meow';
}
