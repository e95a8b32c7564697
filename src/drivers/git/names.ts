// Paths inside a tree, as git knows them: bytes with slashes. Here a path is a string with one character for each byte (a
// *name*), so that it can be a key, be cut and compared, and need not be UTF-8.

/** Path for system calls. `root` is an ordinary path. */
export function inside(root: string, name: string): Buffer {
  return Buffer.concat([Buffer.from(`${root}/`), bytesOf(name)]);
}

export function bytesOf(name: string): Buffer {
  return Buffer.from(name, 'latin1');
}

/** Text for people and patterns. Bytes that are not UTF-8 become U+FFFD. */
export function textOf(name: string): string {
  return bytesOf(name).toString('utf8');
}

/** Name of an ordinary path. */
export function nameOf(path: string): string {
  return Buffer.from(path).toString('latin1');
}

/** Quoted as git reads it from a line. */
export function quoted(name: string): string {
  const escaped = name.replaceAll(/[^ !#-[\]-~]/g, (byte) => `\\${byte.charCodeAt(0).toString(8).padStart(3, '0')}`);
  return `"${escaped}"`;
}

/** `a` and `a/b` for `a/b/c`. */
export function foldersOf(name: string): readonly string[] {
  const folders: string[] = [];
  for (let at = name.indexOf('/'); at !== -1; at = name.indexOf('/', at + 1)) folders.push(name.slice(0, at));
  return folders;
}

/** A set of names, and of folders with a trailing slash that stand for all their contents. */
export class NameSet {
  readonly #names: ReadonlySet<string>;
  /** Folders that contain a member, at any depth. */
  readonly #above = new Set<string>();

  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
    for (const name of this.#names) for (const folder of foldersOf(name)) this.#above.add(folder);
  }

  /** The set has the name, or a folder that contains it. */
  covers(name: string): boolean {
    return this.#names.has(name) || foldersOf(name).some((folder) => this.#names.has(`${folder}/`));
  }

  /** The set has something in the folder, or the whole folder. `folder`: without a slash. */
  isWithin(folder: string): boolean {
    return this.#above.has(folder);
  }
}
