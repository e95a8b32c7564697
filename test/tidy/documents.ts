// What the repository says outside of its code: links lead somewhere, and nothing speaks of one machine.

import { dirname } from 'node:path';
import { lineAt, matches, resolvePath, type Rule, type Tree } from './tree.ts';

/** Documents, that is Markdown for people. Under test/ it is input of a test. */
function documents(tree: Tree): [string, string][] {
  return [...tree].filter(([path]) => path.endsWith('.md') && !path.startsWith('test/'));
}

export const linksLeadSomewhere: Rule = (tree) => {
  const folders = new Set([...tree.keys()].flatMap(foldersOf));
  return documents(tree).flatMap(([path, text]) =>
    linksOf(text).flatMap(({ target, line }) => {
      if (/^[a-z][a-z+.-]*:|^\/\//i.test(target)) return [];
      const [file = '', anchor] = decodeURI(target).split('#');
      const to = file === '' ? path : resolvePath(path, file);
      if (!tree.has(to) && !folders.has(to)) return [`${path}:${line}: ${target}: there is no ${to}`];
      if (anchor === undefined || anchor === '' || !to.endsWith('.md')) return [];
      return anchorsOf(tree.get(to) ?? '').has(anchor) ? [] : [`${path}:${line}: ${target}: ${to} has no such heading`];
    }),
  );
};

function foldersOf(path: string): string[] {
  const folder = dirname(path);
  return folder === '.' ? [''] : [folder, ...foldersOf(folder)];
}

function linksOf(text: string): { target: string; line: number }[] {
  const prose = withoutCode(text);
  const inline = prose.matchAll(/\]\(\s*<?([^\s)>]+)>?(?:\s+"[^"]*")?\s*\)/g);
  const definitions = prose.matchAll(/^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)>?/gm);
  return [...inline, ...definitions].map(({ 1: target = '', index }) => ({ target, line: lineAt(prose, index) }));
}

/** Headings get their anchors as the usual forges make them: lower case, dashes for spaces, counted when repeated. */
function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>();
  const withoutFences = text.replaceAll(FENCE, blank);
  for (const { 1: heading = '' } of withoutFences.matchAll(/^ {0,3}#{1,6}\s+(.+?)\s*#*$/gm)) {
    const plain = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase();
    const slug = plain.replaceAll(/[^\p{L}\p{N}\s_-]/gu, '').replaceAll(/\s/g, '-');
    let anchor = slug;
    for (let n = 1; anchors.has(anchor); n++) anchor = `${slug}-${n}`;
    anchors.add(anchor);
  }
  for (const { 1: id = '' } of withoutFences.matchAll(/<[a-z]+\s[^>]*\b(?:id|name)="([^"]+)"/gi)) anchors.add(id);
  return anchors;
}

const FENCE = /^( *)(`{3,}|~{3,})[^\n]*\n[\s\S]*?^ *\2[`~]*[ \t]*$/gm;

function withoutCode(text: string): string {
  return text.replaceAll(FENCE, blank).replaceAll(/(`+)(?!`)[^\n]*?(?<!`)\1(?!`)/g, blank);
}

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, ' ');
}

/** Where people keep their checkouts: a path that begins there is true on one machine. */
const PERSONAL = /(?<![\w.~}-])\/(home|root|Users|work|workspace|builds|farm)\//g;

export const noPathOfOneMachine: Rule = (tree) =>
  [...tree]
    .filter(([path]) => !path.startsWith('test/tidy'))
    .flatMap(([path, text]) => matches(path, text, PERSONAL, 'a path that exists on one machine'));

/** Which registry a package came from is a matter of who installs; the lockfile keeps versions and hashes. */
export const noRegistryIsNamed: Rule = (tree) => [
  ...matches('package-lock.json', tree.get('package-lock.json') ?? '', /"resolved"/g, 'names a registry'),
  ...matches('.npmrc', tree.get('.npmrc') ?? '', /registry\s*=\s*\w+:/g, 'names a registry'),
];

interface Lockfile {
  readonly packages?: Readonly<Record<string, { readonly optionalDependencies?: Readonly<Record<string, string>> }>>;
}

/** A lockfile that was written on one platform must not lack the binaries of the others. */
export const lockfileHasEveryPlatform: Rule = (tree) => {
  const { packages = {} } = JSON.parse(tree.get('package-lock.json') ?? '{}') as Lockfile;
  const names = new Set(Object.keys(packages).map((folder) => folder.replace(/^.*node_modules\//, '')));
  return Object.values(packages)
    .flatMap(({ optionalDependencies = {} }) => Object.keys(optionalDependencies))
    .filter((name) => !names.has(name))
    .map((name) => `package-lock.json:1: lacks ${name}, so \`npm ci\` fails: run \`npm run lock\``);
};
