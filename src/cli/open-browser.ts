// Opens an address in the user's browser. The address has a token, so it is not an argument, which every user of the machine
// could read: the browser gets the path of a private file that redirects to it.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { writePrivate } from '../sys/files.ts';
import { warn } from './output.ts';

/** The browser has long read it by then. */
const REMOVED_AFTER_MS = 60_000;

/** Returns at once. `failed`: called with a sentence if no browser can be started. `remove`: deletes the file now instead of a minute later. */
export function openInBrowser(url: string, failed = warn): { readonly remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'meow-ui-'));
  const file = join(folder, 'open.html');
  writePrivate(file, documentFor(url));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  setTimeout(remove, REMOVED_AFTER_MS).unref();
  const { BROWSER = '' } = process.env;
  const opener = process.platform === 'darwin' ? 'open' : 'xdg-open';
  // $BROWSER may have arguments.
  const [program, ...args] = BROWSER === '' ? [opener, file] : ['/bin/sh', '-c', 'exec $BROWSER "$1"', 'sh', file];
  const child = spawn(program, args, { stdio: 'ignore', detached: true });
  child.once('error', ({ message }) => failed(`meow: the browser could not be started (${message}); open the address`));
  child.unref();
  return { remove };
}

function documentFor(url: string): string {
  const target = url.replaceAll(/[&<>"]/g, (each) => `&#${each.charCodeAt(0)};`);
  return `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0;url=${target}"><title>meow</title>`;
}
