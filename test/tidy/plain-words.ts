// How the repository reads: phrases that a reader has to translate are not used, and each numbered rule has one id.

import { lineAt, type Rule } from './tree.ts';

/** Each with what to write instead. */
const BANNED: readonly (readonly [RegExp, string])[] = [
  [/\bwhoever\b/gi, 'name who does it'],
  [/\bwhere there (?:is|are) (?:no|none)\b/gi, 'if absent'],
  [/\bwhere nobody\b/gi, 'if nobody'],
  [/\b(?:null|none|empty|absent|zero|0) where\b/gi, 'if'],
  [/\bmend(?:s|ed|ing)?\b/gi, 'fix'],
  [/\b(?:make|makes|made|making) good for\b/gi, 'handle, recover, replace'],
  [/\bof late\b/gi, 'recently'],
  [/\bhand(?:s|ed|ing)? on\b/gi, 'pass, return'],
  [/\b(?:take|takes|taken|took|taking) up\b/gi, 'resume'],
  [
    /(?<!\bthere )\bis no (?:id|run|list|tag|file|failure|state|project|step|duration|integer|folder|workflow)\b/gi,
    'is not a …',
  ],
  [/\blies? (?:beside|there)\b/gi, 'is stored in, is next to'],
  [/\bnobody knows\b/gi, 'is unknown'],
  [/\bhow (?:a|the) (?:run|step)s? stands?\b/gi, 'status'],
  [/\bis to be had\b/gi, 'is available'],
  [/\bwhat it was told\b/gi, 'name the message'],
  [/\bgone on with\b/gi, 'continued, resumed'],
  [/\bis (?:waited for|looked at)\b/gi, 'say who waits or checks'],
  [/\b(?:come|comes|came|coming|brought|bring) into being\b/gi, 'exist, appear, create'],
  [/\blines? of control\b/gi, 'lane'],
  [/\bstarted anew\b/gi, 'restarted'],
  [/\bfor whoever\b/gi, 'name the reader'],
  [/\bas good as\b/gi, 'say what it is'],
];

/** Where this holds by now. A folder that has become clean is added here. */
const HELD: readonly RegExp[] = [
  /^src\//,
  /^test\/(?:agents|contracts|e2e|kernel-rig|rig|simulation|traces|tidy)\//,
  /^test\/(?:traces|client)\.test\.ts$/,
  /^(?:CHANGELOG|README|CONTRIBUTING|SECURITY)\.md$/,
  /^(?:bench|docs|examples|lib|scripts)\//,
];

export const wordsArePlain: Rule = (tree) =>
  [...tree].flatMap(([path, text]) => {
    if (!HELD.some((held) => held.test(path)) || path === 'test/tidy/plain-words.ts') return [];
    return BANNED.flatMap(([pattern, instead]) =>
      [...text.matchAll(pattern)].map(
        ({ 0: phrase, index }) => `${path}:${lineAt(text, index)}: "${phrase}": write: ${instead}`,
      ),
    );
  });

/** A rule at the head of a file, such as `//   delivery/3. …` or `//   K1. …`. */
const DEFINITION = /^\/\/ +((?:[a-z]+(?:-[a-z]+)*\/|[A-Z])\d+)\.? +\S/gm;

/** The kernel, the engine and the guarantees have letters; every other rule has the name of its subject. */
const LETTERS = /^(?:K|E|G)\d+$/;
const LETTERED = /^src\/(?:kernel|engine)\//;

export const ruleIdsAreUnique: Rule = (tree) => {
  const definedIn = new Map<string, string>();
  const findings: string[] = [];
  for (const [path, text] of tree) {
    if (!/^src\/.*\.ts$/.test(path) || path.endsWith('.test.ts')) continue;
    for (const { 1: id = '', index } of text.matchAll(DEFINITION)) {
      const where = `${path}:${lineAt(text, index)}`;
      const first = definedIn.get(id);
      if (first !== undefined) findings.push(`${where}: the rule id ${id} is used in ${first} too`);
      else if (!id.includes('/') && !(LETTERS.test(id) && LETTERED.test(path)))
        findings.push(`${where}: the rule id ${id} says nothing: write SUBJECT/NUMBER`);
      definedIn.set(id, first ?? path);
    }
  }
  return [...findings, ...unknownRules(tree, new Set(definedIn.keys()))];
};

/** Citations in comments and test titles of rules that no file defines. */
function unknownRules(tree: Parameters<Rule>[0], defined: ReadonlySet<string>): string[] {
  const subjects = [...new Set([...defined].filter((id) => id.includes('/')).map((id) => id.split('/')[0]))];
  if (subjects.length === 0) return [];
  const citation = new RegExp(`(?<=[(\`, ])(?:${subjects.join('|')})/\\d+(?=[)\`,.: –])`, 'g');
  return [...tree].flatMap(([path, text]) => {
    if (!/^(?:src|test)\/.*\.ts$|^ARCHITECTURE\.md$/.test(path) || path.startsWith('test/tidy')) return [];
    return [...text.matchAll(citation)]
      .filter(({ 0: id }) => !defined.has(id))
      .map(({ 0: id, index }) => `${path}:${lineAt(text, index)}: there is no rule ${id}`);
  });
}
