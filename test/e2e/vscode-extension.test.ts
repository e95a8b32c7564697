// The extension for VS Code: packed, and read and run as the editor does.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createOnigScanner, createOnigString, loadWASM } from 'vscode-oniguruma';
import { parseRawGrammar, Registry } from 'vscode-textmate';
import { graphPage } from '../../editors/vscode/src/graph-page.ts';
import { readZip } from '../../src/app/zip.ts';

const ROOT = resolve(import.meta.dirname, '../..');

interface Described {
  readonly version: string;
  readonly main: string;
  readonly activationEvents: readonly string[];
  readonly capabilities: { readonly untrustedWorkspaces: { readonly restrictedConfigurations: readonly string[] } };
  readonly contributes: {
    readonly languages: readonly { readonly id: string; readonly configuration: string }[];
    readonly grammars: readonly { readonly scopeName: string; readonly path: string; readonly injectTo?: string[] }[];
    readonly commands: readonly { readonly command: string; readonly enablement: string }[];
    readonly configuration: { readonly properties: Readonly<Record<string, unknown>> };
  };
}

let folder = '';
let files: ReadonlyMap<string, { readonly bytes: Buffer }> = new Map();

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'meow-vscode-'));
  const archive = join(folder, 'meow.vsix');
  execFileSync(join(ROOT, 'node_modules/.bin/tsx'), ['scripts/pack-vscode.mjs', archive], { cwd: ROOT });
  const read = readZip(readFileSync(archive));
  if (!read.ok) throw new Error(read.error);
  files = read.value;
  for (const [path, { bytes }] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  }
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

function textOf(path: string): string {
  return files.get(path)?.bytes.toString('utf8') ?? '';
}

function described(): Described {
  return JSON.parse(textOf('extension/package.json')) as Described;
}

describe('the packed extension', () => {
  test('contains what an extension needs, and nothing else', () => {
    expect([...files.keys()].toSorted()).toEqual([
      '[Content_Types].xml',
      'extension.vsixmanifest',
      'extension/LICENSE.txt',
      'extension/README.md',
      'extension/THIRD-PARTY-LICENSES.txt',
      'extension/extension.cjs',
      'extension/language-configuration.json',
      'extension/package.json',
      'extension/syntaxes/meow.tmLanguage.json',
      'extension/syntaxes/placeholders.tmLanguage.json',
      'extension/syntaxes/tags.tmLanguage.json',
    ]);
    for (const path of files.keys()) {
      const [ending = ''] = /\.\w+$/.exec(path) ?? [];
      if (path !== '[Content_Types].xml') expect(textOf('[Content_Types].xml')).toContain(`Extension="${ending}"`);
    }
    expect(textOf('extension/THIRD-PARTY-LICENSES.txt')).toMatch(/^vscode-languageclient \S+ \(MIT\)$/m);
    expect(textOf('extension/THIRD-PARTY-LICENSES.txt')).not.toContain('no license file');
  });

  test('has the version of meow', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Described;
    expect(described().version).toBe(version);
    expect(textOf('extension.vsixmanifest')).toContain(` Version="${version}" Publisher="meow-workflows"`);
  });

  test('names files that it contains', () => {
    const { main, contributes } = described();
    const named = [
      main,
      ...contributes.grammars.map(({ path }) => path),
      ...contributes.languages.map((each) => each.configuration),
    ];
    for (const path of named) expect([...files.keys()]).toContain(`extension/${path.replace('./', '')}`);
    const assets = [...textOf('extension.vsixmanifest').matchAll(/ Path="([^"]+)"/g)].map(([, path]) => path);
    expect(assets).toHaveLength(3);
    for (const path of assets) expect([...files.keys()]).toContain(path);
  });

  test('is not in the npm package', () => {
    const { files: published } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { files: string[] };
    expect(published.filter((path) => path.startsWith('editors'))).toEqual([]);
  });
});

describe('in the editor', () => {
  interface Event {
    readonly kind: string;
    readonly command?: string;
    readonly args?: readonly string[];
    readonly commands?: readonly string[];
    readonly message?: string;
  }

  function run(trust: 'trusted' | 'untrusted'): readonly Event[] {
    const host = join(ROOT, 'test/rig/extension-host.mjs');
    const output = execFileSync(process.execPath, [host, join(folder, 'extension/extension.cjs'), trust], {
      encoding: 'utf8',
    });
    return output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Event);
  }

  test('registers the commands that its manifest names, which need trust', () => {
    const { contributes, capabilities } = described();
    const active = run('untrusted').find(({ kind }) => kind === 'active');
    expect(active?.commands?.toSorted()).toEqual(contributes.commands.map(({ command }) => command).toSorted());
    expect(new Set(contributes.commands.map(({ enablement }) => enablement))).toEqual(new Set(['isWorkspaceTrusted']));
    expect(capabilities.untrustedWorkspaces.restrictedConfigurations).toEqual(
      Object.keys(contributes.configuration.properties),
    );
  });

  test('starts nothing in an untrusted workspace, whatever command is called, and the server once it is trusted', () => {
    const events = run('untrusted');
    const [before, after] = [events.findIndex(({ kind }) => kind === 'granted'), events.length];
    expect(events.slice(0, before).map(({ kind }) => kind)).toEqual(['active', 'warning', 'warning']);
    expect(events.slice(before, after)).toEqual(
      expect.arrayContaining([{ kind: 'starts', command: '/opt/meow', args: ['lsp', '--stdio'] }]),
    );
  });

  test('starts the server of the configured path, and says what to do if it cannot', () => {
    const events = run('trusted');
    expect(events).toContainEqual({ kind: 'starts', command: '/opt/meow', args: ['lsp', '--stdio'] });
    expect(events.filter(({ kind }) => kind === 'error').map(({ message }) => message)).toContain(
      'MEOW cannot start /opt/meow lsp: this host starts nothing. Set meow.path to the path of meow.',
    );
  });

  test('shows a graph without any right to run or load something', () => {
    const page = graphPage({ svg: '<svg><script>alert(1)</script></svg>' });
    expect(page).toContain(`content="default-src 'none'; img-src data:"`);
    expect(page).not.toContain('<script');
    expect(graphPage({ problem: '<img src=x onerror=alert(1)>' })).toContain('&lt;img');
  });
});

describe('colours', () => {
  /** Stands for a grammar that another extension brings: only its name matters. */
  const OTHER = '{ "scopeName": "SCOPE", "patterns": [{ "name": "string.other", "match": "[^{}<>/]+" }] }';

  async function tokens(scope: string, line: string): Promise<readonly (readonly [string, string])[]> {
    const wasm = readFileSync(createRequire(import.meta.url).resolve('vscode-oniguruma/release/onig.wasm'));
    await loadWASM(wasm);
    const { grammars } = described().contributes;
    const registry = new Registry({
      onigLib: Promise.resolve({
        createOnigScanner: (patterns: string[]) => createOnigScanner(patterns),
        createOnigString: (text: string) => createOnigString(text),
      }),
      loadGrammar: (name) => {
        const own = grammars.find(({ scopeName }) => scopeName === name);
        const text = own === undefined ? OTHER.replace('SCOPE', name) : textOf(`extension/${own.path.slice(2)}`);
        return Promise.resolve(parseRawGrammar(text, `${name}.json`));
      },
      getInjections: (name) =>
        grammars.filter(({ injectTo }) => injectTo?.includes(name)).map((each) => each.scopeName),
    });
    const grammar = await registry.loadGrammar(scope);
    const found = grammar?.tokenizeLine(line, null).tokens ?? [];
    return found.map(({ startIndex, endIndex, scopes }) => [line.slice(startIndex, endIndex), scopes.at(-1) ?? '']);
  }

  test('a MEOW step', async () => {
    expect(await tokens('source.meow', 'command = "echo {{build.outputs.tag}}" # why')).toEqual(
      expect.arrayContaining([
        ['command', 'variable.other.property.meow'],
        ['{{', 'punctuation.section.embedded.begin.meow'],
        ['build', 'variable.other.meow'],
        ['.outputs.tag', 'variable.other.property.meow'],
        ['}}', 'punctuation.section.embedded.end.meow'],
        ['# why', 'comment.line.number-sign.meow'],
      ]),
    );
    expect(await tokens('source.meow', '[[main.steps]]')).toContainEqual(['main.steps', 'entity.name.section.meow']);
    expect(await tokens('source.meow', 'text = "{{{{x}} # no"')).toContainEqual([
      '{{{{',
      'constant.character.escape.meow',
    ]);
  });

  test.each(['text.html.markdown', 'source.yaml'])('placeholders and tags in %s', async (scope) => {
    expect(await tokens(scope, 'Say {{input}}, then <call return="A.md">REVIEW.md</call>.')).toEqual(
      expect.arrayContaining([
        ['input', 'variable.other.meow'],
        ['call', 'entity.name.tag.meow'],
        ['return', 'entity.other.attribute-name.meow'],
        ['"A.md"', 'string.quoted.meow'],
        ['REVIEW.md', 'entity.name.function.state.meow'],
      ]),
    );
  });

  test('no tag of another language', async () => {
    const found = await tokens('text.html.markdown', '<b>bold</b> <resulting>');
    expect(found.filter(([, scope]) => scope.endsWith('.meow'))).toEqual([]);
  });
});
