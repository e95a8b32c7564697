// Paths and globs that must not leave their base folder.

export interface PathProblem {
  readonly message: string;
  readonly hint: string;
}

/** Null if it stays below its base folder. */
export function pathProblem(path: string): PathProblem | null {
  const said = JSON.stringify(path);
  if (path.trim() === '') return { message: 'the path is empty', hint: 'Fill it in, or remove it.' };
  if (/^(?:[/~\\]|[A-Za-z]:[/\\])/.test(path))
    return { message: `${said} is absolute`, hint: 'Write it as seen from the folder that it is in.' };
  if (path.split('/').includes('..'))
    return { message: `${said} is outside of its folder`, hint: 'Write it without "..".' };
  return null;
}

/** A folder may be written with or without a trailing slash. */
export function tidyPath(path: string): string {
  return path.replace(/^(?:\.\/+)+/, '').replace(/\/+$/, '') || '.';
}
