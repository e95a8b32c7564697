// The tree as the tidy rules see it: every file of the repository as text, and TypeScript files also as code.
//
// A rule is a function from a tree to its findings, `path:line: what is wrong`, so a rule is tried on a tree of two
// lines as easily as it is applied to the whole.

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { parseSync, Visitor } from 'oxc-parser';

/** Path from the root of the repository → text. Files that are not text are there with an empty one. */
export type Tree = ReadonlyMap<string, string>;

export type Rule = (tree: Tree) => string[];

export interface Import {
  readonly specifier: string;
  /** Path of the file that is imported, if the specifier is a relative one. */
  readonly target: string | undefined;
  readonly typeOnly: boolean;
  readonly line: number;
}

export interface Code {
  readonly path: string;
  readonly text: string;
  /** The text with what stands in comments, strings, templates and regular expressions made blank, line by line. */
  readonly bare: string;
  readonly imports: readonly Import[];
  /** Properties that a type declares with a literal string: `readonly kind: 'step'`. */
  readonly tags: readonly { readonly name: string; readonly line: number }[];
}

const NOT_OURS = new Set(['.git', '.meow', 'node_modules', 'dist', 'coverage']);

export function readTree(root: string): Tree {
  const tree = new Map<string, string>();
  const visit = (folder: string): void => {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (NOT_OURS.has(path) || entry.name === 'node_modules') continue;
      if (entry.isDirectory()) visit(path);
      else if (entry.isFile()) tree.set(path, readText(join(root, path)));
    }
  };
  visit('');
  return tree;
}

function readText(path: string): string {
  const text = readFileSync(path, 'utf8');
  return text.includes('\0') ? '' : text;
}

/** Paths inside a tree are relative to the root, with slashes. */
export function resolvePath(from: string, specifier: string): string {
  return relative('/', resolve('/', dirname(from), specifier));
}

export function isTest(path: string): boolean {
  return path.endsWith('.test.ts');
}

/** TypeScript files under a folder, parsed. */
export function codeUnder(tree: Tree, folder: string): Code[] {
  const found: Code[] = [];
  for (const [path, text] of tree) {
    if (path.startsWith(`${folder}/`) && /\.tsx?$/.test(path)) found.push(codeOf(path, text));
  }
  return found;
}

const parsed = new Map<string, Code>();

function codeOf(path: string, text: string): Code {
  const known = parsed.get(path);
  if (known?.text === text) return known;
  const code = parse(path, text);
  parsed.set(path, code);
  return code;
}

function parse(path: string, text: string): Code {
  const { program, comments, module } = parseSync(path, text);
  const blanks: { start: number; end: number }[] = [...comments];
  const imports: Import[] = [];
  const tags: { name: string; line: number }[] = [];
  const add = (specifier: string, start: number, typeOnly: boolean): void => {
    const target = specifier.startsWith('.') ? resolvePath(path, specifier) : undefined;
    imports.push({ specifier, target, typeOnly, line: lineAt(text, start) });
  };

  for (const { moduleRequest, entries, start } of module.staticImports) {
    add(moduleRequest.value, start, entries.length > 0 && entries.every((entry) => entry.isType));
  }
  for (const { entries, start } of module.staticExports) {
    const from = entries.find((entry) => entry.moduleRequest !== null)?.moduleRequest;
    if (from)
      add(
        from.value,
        start,
        entries.every((entry) => entry.isType),
      );
  }
  new Visitor({
    Literal: (node) => {
      if (typeof node.value === 'string' || 'regex' in node) blanks.push(node);
    },
    TemplateElement: (node) => {
      blanks.push(node);
    },
    ImportExpression: ({ source, start }) => {
      if (source.type === 'Literal' && typeof source.value === 'string') add(source.value, start, false);
    },
    TSImportType: ({ source, start }) => {
      add(source.value, start, true);
    },
    TSPropertySignature: ({ key, typeAnnotation, start }) => {
      if (key.type !== 'Identifier' || typeAnnotation === null || typeAnnotation === undefined) return;
      const { typeAnnotation: type } = typeAnnotation;
      if (type.type === 'TSLiteralType' && type.literal.type === 'Literal' && typeof type.literal.value === 'string') {
        tags.push({ name: key.name, line: lineAt(text, start) });
      }
    },
  }).visit(program);

  return { path, text, bare: blankOut(text, blanks), imports, tags };
}

function blankOut(text: string, spans: readonly { start: number; end: number }[]): string {
  let bare = '';
  let at = 0;
  for (const { start, end } of spans.toSorted((a, b) => a.start - b.start)) {
    if (end <= at) continue;
    bare += text.slice(at, start) + text.slice(Math.max(start, at), end).replaceAll(/[^\n]/g, ' ');
    at = end;
  }
  return bare + text.slice(at);
}

export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

/** A finding for each place where a pattern (with the flag `g`) is met. */
export function matches(path: string, text: string, pattern: RegExp, says: string): string[] {
  return [...text.matchAll(pattern)].map(({ index }) => `${path}:${lineAt(text, index)}: ${says}`);
}
