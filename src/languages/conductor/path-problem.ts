// Paths and globs that must stay where they are seen from.

export interface PathProblem {
  readonly message: string;
  readonly hint: string;
}

/** Null where it stays below the folder that it is seen from. */
export function pathProblem(path: string): PathProblem | null {
  const said = JSON.stringify(path);
  if (path.trim() === '') return { message: 'the path is empty', hint: 'Fill it in, or remove it.' };
  if (/^(?:[/~\\]|[A-Za-z]:[/\\])/.test(path))
    return { message: `${said} is absolute`, hint: 'Write it as seen from the folder that it is in.' };
  if (path.split('/').includes('..'))
    return { message: `${said} leads out of its folder`, hint: 'Write it without "..".' };
  return null;
}

/** A folder is meant with a slash at its end or without. */
export function tidyPath(path: string): string {
  return path.replace(/^(?:\.\/+)+/, '').replace(/\/+$/, '') || '.';
}
