// `meow ui export`: a file that shows a run without a server.

import { expect, test } from 'vitest';
import type { ExportDocument } from '../../src/web/protocol.ts';
import { Rig } from '../rig/rig.ts';

const HOSTILE = '</script><img src=x onerror=alert(1)><!--<script>';

test('the file contains the whole run, refers to nothing outside, and text of the run cannot leave its element', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'a.meow.toml',
    `[main]
[[main.steps]]
id = "say"
executor = "shell"
command = '''printf '%s\\n' "$TEXT"; seq 90000'''
env = { TEXT = '''${HOSTILE}''' }
outputs = { first = { source = "stdout" } }
`,
  );
  await rig.meow('run', 'a.meow.toml', '--id', 'hostile', '--meta', `note=${HOSTILE}`);
  const { stdout, stderr, code } = await rig.meow('ui', 'export', 'host');
  expect({ stderr, code }).toEqual({ stderr: '', code: 0 });
  expect(stdout).not.toContain('<img');
  const { name, records, outputs, engine } = exportedIn(stdout);
  expect({ name, outputs, engine }).toEqual({
    name: { project: 'project', run: 'hostile' },
    outputs: {},
    engine: null,
  });
  expect(records.at(-1)?.decisions.at(-1)?.kind).toBe('run-ended');
  expect(JSON.stringify(records[0]?.decisions)).toContain(JSON.stringify(HOSTILE).slice(1, -1));
  // Its own text and style, and nothing else: no address in any attribute.
  expect(stdout.match(/<(?:script|style|link|img|iframe)\b[^>]*/g)).toEqual([
    '<style',
    '<script type="application/json" id="meow-export"',
    '<script type="module"',
  ]);
  expect(stdout).toContain("default-src 'none'");
});

test('with outputs, the file contains the end of each output, and where in the output that is', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'a.meow.toml',
    `[main]
[[main.steps]]
id = "count"
executor = "shell"
command = "seq 90000; echo said >&2"
`,
  );
  await rig.meow('run', 'a.meow.toml', '--id', 'counts');
  const { outputs } = exportedIn((await rig.meow('ui', 'export', 'counts', '--with-outputs')).stdout);
  const [stdout, stderr] = outputs['count#1'] ?? [];
  expect(stderr).toEqual({ stream: 'stderr', from: 0, size: 5, text: 'said\n' });
  expect(stdout).toMatchObject({ stream: 'stdout', size: 528_894 });
  // Begins with a whole line.
  const [first = ''] = stdout?.text.split('\n') ?? [];
  const before = Array.from({ length: Number(first) - 1 }, (_, index) => `${index + 1}\n`).join('');
  expect(before.length).toBe(stdout?.from);
  expect(stdout?.text.endsWith('89999\n90000\n')).toBe(true);
});

test('a run that does not exist is named, and nothing is printed', async () => {
  await using rig = await Rig.setup();
  const { stdout, stderr, code } = await rig.meow('ui', 'export', 'none');
  expect({ stdout, code }).toEqual({ stdout: '', code: 2 });
  expect(stderr).toContain('none');
});

function exportedIn(html: string): ExportDocument {
  const [, json = ''] = /<script type="application\/json" id="meow-export">([^<]*)<\/script>/.exec(html) ?? [];
  return JSON.parse(json) as ExportDocument;
}
