// `meow lsp`: a language server on stdin and stdout, for editors. It lives as long as the editor that started it. The
// server and its library are a bundle of their own (src/lsp), so that no other command loads them.

import { EXIT } from '../output.ts';

declare const MEOW_VERSION: string;

export async function lsp(): Promise<number> {
  const { serveLsp } = await import('../../lsp/server.ts');
  await serveLsp({ version: MEOW_VERSION, input: process.stdin, output: process.stdout });
  return EXIT.done;
}
