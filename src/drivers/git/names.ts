// Paths inside of a tree, as git knows them: bytes, with slashes. Here such a path is a string with one character for each
// byte (a *name*), so that it can be a key, cut and compared, and no path is lost because it is no UTF-8.

/** For the system. `root` is an ordinary path. */
export function inside(root: string, name: string): Buffer {
  return Buffer.concat([Buffer.from(`${root}/`), bytesOf(name)]);
}

export function bytesOf(name: string): Buffer {
  return Buffer.from(name, 'latin1');
}

/** For people and patterns. Bytes that are no UTF-8 become U+FFFD. */
export function textOf(name: string): string {
  return bytesOf(name).toString('utf8');
}

/** The name that an ordinary path is. */
export function nameOf(path: string): string {
  return Buffer.from(path).toString('latin1');
}

/** As git reads it from a line: in quotes, whatever is in it. */
export function quoted(name: string): string {
  const escaped = name.replaceAll(/[^ !#-[\]-~]/g, (byte) => `\\${byte.charCodeAt(0).toString(8).padStart(3, '0')}`);
  return `"${escaped}"`;
}

/** `a`, `a/b` of `a/b/c`. */
export function foldersOf(name: string): readonly string[] {
  const folders: string[] = [];
  for (let at = name.indexOf('/'); at !== -1; at = name.indexOf('/', at + 1)) folders.push(name.slice(0, at));
  return folders;
}

/** Names, and folders with a slash behind them that stand for all that is in them. */
export class NameSet {
  readonly #names: ReadonlySet<string>;
  /** Folders that something of it is in, at any depth. */
  readonly #above = new Set<string>();

  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
    for (const name of this.#names) for (const folder of foldersOf(name)) this.#above.add(folder);
  }

  /** The name itself, or a folder that it is in. */
  covers(name: string): boolean {
    return this.#names.has(name) || foldersOf(name).some((folder) => this.#names.has(`${folder}/`));
  }

  /** Something of it is in the folder, or is all of the folder. `folder`: without a slash. */
  isWithin(folder: string): boolean {
    return this.#above.has(folder);
  }
}
