// Entries of an index file, from `git ls-files`: flags that hide changes from `git status`, submodules, file sizes. Pure.
//
// `git update-index --assume-unchanged` and `--skip-worktree` hide changes. Snapshots look at such files themselves.

export interface IndexListing {
  /** Tracked names. */
  readonly names: readonly string[];
  /** Flagged as unchanged: whatever is there has to be looked at. */
  readonly assumed: readonly string[];
  /** Left out of the tree (a sparse checkout); looked at if it exists all the same. */
  readonly skipped: readonly string[];
  readonly submodules: readonly string[];
  /** Size of each file in the working tree when git last looked; 0 if unknown. Only with `--debug`. */
  readonly sizes: ReadonlyMap<string, number>;
}

export const INDEX_ARGS = ['ls-files', '-s', '-v', '-z'] as const;

export function readIndexListing(output: Buffer): IndexListing {
  const names = new Set<string>();
  const assumed: string[] = [];
  const skipped: string[] = [];
  const submodules: string[] = [];
  const sizes = new Map<string, number>();
  const text = output.toString('latin1');
  let name = '';
  for (let at = 0, end = text.indexOf('\0'); end !== -1; at = end + 1, end = text.indexOf('\0', at)) {
    const start = text.startsWith(DEBUG, at) ? endOfDebug(text, at) : at;
    if (start > at) sizes.set(name, sizeIn(text.slice(at, start)));
    const tab = text.indexOf('\t', start);
    name = text.slice(tab + 1, end);
    names.add(name);
    const tag = text[start] ?? '';
    if (text.startsWith('160000', start + 2)) submodules.push(name);
    else if (tag === 'S' || tag === 's') skipped.push(name);
    else if (tag !== tag.toUpperCase()) assumed.push(name);
  }
  const last = text.slice(text.lastIndexOf('\0') + 1);
  if (last.startsWith(DEBUG)) sizes.set(name, sizeIn(last));
  return { names: [...names], assumed, skipped, submodules, sizes };
}

/** `--debug` prints five lines about each entry behind its name. */
const DEBUG = '  ctime: ';
const DEBUG_LINES = 5;

function endOfDebug(text: string, at: number): number {
  let end = at;
  for (let line = 0; line < DEBUG_LINES; line += 1) end = text.indexOf('\n', end) + 1;
  return end;
}

function sizeIn(debug: string): number {
  return Number(/^ {2}size: (\d+)/m.exec(debug)?.[1] ?? 0);
}
