// How a template is named: `.x` and `x` are a workflow of the same file, else the file x; `x#y` is the workflow y of the
// file x, `#y` of the same one. A file is named with or without its ending, relative to where the name stands, or to a
// folder that is searched.

export type Reference =
  | { readonly kind: 'local'; readonly name: string }
  /** A workflow of the same file, or else the main one of a file. */
  | { readonly kind: 'either'; readonly name: string }
  | { readonly kind: 'file'; readonly path: string; readonly workflow: string };

/** Null where the text names nothing. */
export function parseReference(text: string): Reference | null {
  const written = text.trim();
  const hash = written.lastIndexOf('#');
  const path = hash === -1 ? written : written.slice(0, hash);
  const workflow = hash === -1 ? null : written.slice(hash + 1).replace(/^\./, '');
  if (workflow !== null) {
    if (workflow === '') return null;
    return path === '' ? { kind: 'local', name: workflow } : { kind: 'file', path, workflow };
  }
  const name = path.replace(/^\./, '');
  if (NAME.test(name)) return { kind: 'either', name };
  return /^[./]*$/.test(path) ? null : { kind: 'file', path, workflow: 'main' };
}

/** Whether `on_error` names a workflow, and not what becomes of the run. */
export function namesRecovery(onError: string): boolean {
  return onError !== 'fail' && onError !== 'continue';
}

/** The file that a reference may mean; null where it can only mean a workflow of its own file. */
export function fileOf(reference: Reference): string | null {
  if (reference.kind === 'local') return null;
  return reference.kind === 'file' ? reference.path : reference.name;
}

/** What a file may be called that is named without its ending. */
export function spellingsOf(path: string): readonly string[] {
  return path.endsWith('.toml') ? [path] : [`${path}.meow.toml`, `${path}.toml`];
}

/** Whether a file is named by where it is, so that no folder is searched for it. */
export function isPlaced(path: string): boolean {
  return /^(?:\.{1,2})?\//.test(path);
}

const NAME = /^[A-Za-z0-9_-]+$/;
