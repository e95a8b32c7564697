// Whatever an editor sends, the language server answers, and goes on.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Editor } from '../rig/editor.ts';
import { MEOW, Rig } from '../rig/rig.ts';

const FILES: Readonly<Record<string, string>> = {
  'w.meow.toml':
    '[[main.steps]]\nid = "a"\nexecutor = "shell"\ncommand = "{{a.outputs.b}}"\nneeds = ["b"]\noutputs = { b = "stdout" }\n',
  'flow/START.md': '---\nallowed_tags: [goto]\n---\nSay <goto>END.md</goto>.\n',
  'flow/END.md': 'Say <result>x</result>, {{input}}.\n',
  'w.yaml':
    'workflow_id: w\nversion: 1\ndescription: d\nentry_step: a\nsteps:\n  - id: a\n    opcode: STOP\n    reason: "x"\n',
};
const JUNK = [
  '',
  '{{',
  '[[',
  '"',
  '"""',
  '\n',
  '<goto>',
  '- {',
  ': &a [*a',
  '\u{1F63A}',
  '\r',
  '"\\u0000"',
  '\uFEFF',
  '---\n',
];
const METHODS = [
  'completion',
  'hover',
  'definition',
  'references',
  'prepareRename',
  'rename',
  'documentSymbol',
  'codeAction',
];
const STRANGE_URIS = [
  'file:///nowhere/x.meow.toml',
  'file://host/x.meow.toml',
  'file:///a%2Fb.toml',
  'file:///%zz.toml',
  'file:///%00.meow.toml',
  'untitled:Untitled-1',
  'git:/x.meow.toml?{}',
  'not a uri',
  '',
];

test('answers every request about every text, position and URI', async () => {
  await using rig = await Rig.setup();
  for (const [file, text] of Object.entries(FILES)) rig.write(file, text);
  await using editor = await Editor.start(rig);
  const names = Object.keys(FILES);
  const uris = [...names.map((name) => editor.uri(name)), ...STRANGE_URIS];
  const steps = fc.record({
    file: fc.constantFrom(...names),
    from: fc.nat(150),
    removed: fc.nat(40),
    junk: fc.constantFrom(...JUNK),
    method: fc.constantFrom(...METHODS),
    uri: fc.constantFrom(...uris),
    line: fc.integer({ min: 0, max: 12 }),
    character: fc.constantFrom(0, 3, 9, 14, 1_000_000),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(steps, { minLength: 1, maxLength: 8 }), async (edits) => {
      for (const { file, from, removed, junk, method, uri, line, character } of edits) {
        const text = FILES[file] ?? '';
        await editor.type(file, `${text.slice(0, from)}${junk}${text.slice(from + removed)}`);
        const context = { includeDeclaration: true, diagnostics: [] };
        const position = { line, character };
        const range = { start: position, end: position };
        await editor.request(`textDocument/${method}`, {
          textDocument: { uri },
          position,
          range,
          context,
          newName: 'renamed',
        });
      }
    }),
    { numRuns: 60 },
  );
  expect(editor.log).toEqual([]);
  for (const [file, text] of Object.entries(FILES)) await editor.type(file, text);
  expect((await editor.problems('w.meow.toml')).map(({ code }) => code)).toContain('unknown-need');
});

test('survives unknown URIs, requests without parameters, and changes of files that are not open', async () => {
  await using rig = await Rig.setup();
  await using editor = await Editor.start(rig);
  for (const uri of STRANGE_URIS) {
    await editor.notify('textDocument/didOpen', { textDocument: { uri, languageId: 'toml', version: 1, text: '[[' } });
    await editor.notify('textDocument/didChange', {
      textDocument: { uri, version: 2 },
      contentChanges: [{ text: ']]' }],
    });
  }
  for (const method of METHODS) await editor.request(`textDocument/${method}`, {});
  await editor.request('nothing/known', { x: 1 });
  for (const uri of STRANGE_URIS) await editor.notify('textDocument/didClose', { textDocument: { uri } });
  await editor.type('w.meow.toml', FILES['w.meow.toml'] ?? '');
  expect((await editor.problems('w.meow.toml')).map(({ code }) => code)).toContain('unknown-need');
});

test('goes on when files are deleted meanwhile', async () => {
  await using rig = await Rig.setup();
  for (const [file, text] of Object.entries(FILES)) rig.write(file, text);
  await using editor = await Editor.start(rig);
  const start = await editor.type('flow/START.md', FILES['flow/START.md'] ?? '');
  expect(await editor.problems('flow/START.md')).toEqual([]);
  rmSync(join(rig.folder, 'flow'), { recursive: true });
  rmSync(join(rig.folder, 'w.yaml'));
  await editor.notify('workspace/didChangeWatchedFiles', { changes: [{ uri: editor.uri('flow/END.md'), type: 3 }] });
  expect(await editor.definition('flow/START.md', { ...start, line: 3, character: 11 })).toEqual([]);
  await editor.type('w.meow.toml', FILES['w.meow.toml'] ?? '');
  expect((await editor.problems('w.meow.toml')).map(({ code }) => code)).toContain('unknown-need');
});

test('ends without a complaint when the editor dies in the middle of a request', async () => {
  await using rig = await Rig.setup();
  const server = spawn(MEOW, ['lsp', '--stdio'], { cwd: rig.folder, env: rig.environment, stdio: 'pipe' });
  let complaints = '';
  server.stderr.on('data', (text: Buffer) => {
    complaints += text.toString();
  });
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'initialize',
    params: { processId: null, rootUri: pathToFileURL(rig.folder).href, capabilities: {} },
  });
  server.stdin.write(`Content-Length: ${body.length}\r\n\r\n${body}`);
  await once(server.stdout, 'data');
  server.stdin.end('Content-Length: 500\r\n\r\n{"jsonrpc": "2.0", "id": 2, "meth');
  const [status] = (await once(server, 'close')) as [number];
  expect([status, complaints]).toEqual([0, '']);
});
