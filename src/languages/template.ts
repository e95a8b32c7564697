// `{{path.to.value}}` in a text. Spaces inside the braces do not matter; `{{{{` is a pair of braces that stands for
// itself. Everything else between two pairs of braces is a mistake and is said to be one: nothing is passed over.

export interface Hole {
  readonly path: readonly string[];
  /** Offsets in the text, braces included. */
  readonly from: number;
  readonly to: number;
}

export interface Template {
  /** Texts and holes in turn, as they stand. */
  readonly parts: readonly (string | Hole)[];
  readonly problems: readonly TemplateProblem[];
}

export interface TemplateProblem {
  readonly from: number;
  readonly to: number;
  readonly message: string;
  readonly hint: string;
}

/** What to say to somebody whose text has braces of its own: docker's and Go's formats, GitHub's expressions. */
export const LITERAL_BRACES = 'Braces that are no reference are written {{{{.';

export function parseTemplate(text: string): Template {
  const parts: (string | Hole)[] = [];
  const problems: TemplateProblem[] = [];
  let plain = '';
  let at = 0;
  for (;;) {
    const open = text.indexOf('{{', at);
    if (open === -1) break;
    plain += text.slice(at, open);
    if (text.startsWith('{{{{', open)) {
      plain += '{{';
      at = open + 4;
      continue;
    }
    if (text[open + 2] === '{') {
      // A brace of the text's own before a reference, as in `{a,{{b}}}` turned around.
      plain += '{';
      at = open + 1;
      continue;
    }
    const closed = /\{\{([^{}\n]*)\}\}/y;
    closed.lastIndex = open;
    const inside = closed.exec(text)?.[1];
    if (inside === undefined) {
      const message = 'this {{ has no }} on its line';
      problems.push({ from: open, to: open + 2, message, hint: `Write {{name}}. ${LITERAL_BRACES}` });
      at = open + 2;
      continue;
    }
    at = closed.lastIndex;
    const path = inside.trim();
    if (/^[\w-]+(?:\.[\w-]+)*$/.test(path)) {
      if (plain !== '') parts.push(plain);
      plain = '';
      parts.push({ path: path.split('.'), from: open, to: at });
    } else problems.push({ from: open, to: at, ...notAPath(path) });
  }
  plain += text.slice(at);
  if (plain !== '') parts.push(plain);
  return { parts, problems };
}

function notAPath(path: string): { readonly message: string; readonly hint: string } {
  if (path === '')
    return { message: 'nothing is named between these braces', hint: `Write {{name}}. ${LITERAL_BRACES}` };
  const hint = `A reference is a name, or names joined by dots: {{task}}, {{build.outputs.path}}. ${LITERAL_BRACES}`;
  return { message: `"${path}" is no reference`, hint };
}
