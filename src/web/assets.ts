// The page's documents and assets, as `npm run build` left them next to this bundle. All are read once, when the server
// starts, and found by their whole name, so no path of a request reaches the file system.

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { extname, join } from 'node:path';

import { present, UsageError } from '../base/errors.ts';
import { isErrno } from '../sys/errors.ts';
import { accepts, type Reply } from './reply.ts';

const HTML_TYPE = 'text/html; charset=utf-8';

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.html': HTML_TYPE,
};

const ENCODINGS = [
  { encoding: 'br', suffix: '.br' },
  { encoding: 'gzip', suffix: '.gz' },
] as const;

export class Assets {
  /** Differs with each version of the page. */
  readonly build: string;
  readonly #files: ReadonlyMap<string, Buffer>;

  constructor(folder = join(import.meta.dirname, 'ui')) {
    this.#files = readAll(folder);
    const hash = createHash('sha256');
    for (const [name, contents] of this.#files) if (name.endsWith('.html')) hash.update(contents);
    this.build = hash.digest('hex').slice(0, 12);
  }

  /** Null if there is no such asset. Documents are not assets. */
  asset(name: string, request: IncomingMessage): Reply | null {
    const plain = this.#files.get(name);
    const type = TYPES[extname(name)];
    if (plain === undefined || type === undefined || type === HTML_TYPE) return null;
    const found = { status: 200, kind: 'asset', type } as const;
    for (const { encoding, suffix } of ENCODINGS) {
      const compressed = this.#files.get(name + suffix);
      if (compressed !== undefined && accepts(request, encoding))
        return { ...found, body: compressed, headers: { 'content-encoding': encoding, vary: 'accept-encoding' } };
    }
    return { ...found, body: plain, headers: { vary: 'accept-encoding' } };
  }

  /** For a browser without the cookie: the same for every address. */
  enter(): Reply {
    return { status: 401, kind: 'page', type: HTML_TYPE, body: this.#document('enter.html') };
  }

  /** `missing`: what the address names that does not exist; null if it names a page. */
  page(missing: string | null): Reply {
    const text = this.#document('page.html');
    if (missing === null) return { status: 200, kind: 'page', type: HTML_TYPE, body: text };
    const meta = `<meta name="meow-missing" content="${escaped(missing)}" />`;
    return { status: 404, kind: 'page', type: HTML_TYPE, body: text.replace('<title>', () => `${meta}\n    <title>`) };
  }

  /** The document for the sandboxed frame; null if this build has none. */
  terminalFrame(): Reply | null {
    const body = this.#files.get('terminal-frame.html');
    return body === undefined ? null : { status: 200, kind: 'frame', type: HTML_TYPE, body };
  }

  #document(name: 'page.html' | 'enter.html'): string {
    return present(this.#files.get(name), `the build has no ${name}`).toString('utf8');
  }
}

function readAll(folder: string): ReadonlyMap<string, Buffer> {
  try {
    return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
  } catch (error) {
    if (!isErrno(error, 'ENOENT', 'ENOTDIR')) throw error;
    throw new UsageError(`the page is missing: ${folder}`, 'install meow again, or in its repository: npm run build');
  }
}

function escaped(text: string): string {
  return text.replaceAll(/[&<>"']/g, (each) => `&#${each.charCodeAt(0)};`);
}
