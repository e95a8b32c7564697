// Records the runs of scenarios.ts with the program in dist/, into test/journals/VERSION/:
//
//   npm run build && npm run record [VERSION]
//
// VERSION is that of package.json if it is left out. Do this once for each release, before it is tagged, and commit the
// result; never record a version anew after its release, or with another program.

import { readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { saveRecording } from './recording.ts';
import { LANGUAGES, makeRun, STATES } from './scenarios.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string };
const folder = join(import.meta.dirname, process.argv[2] ?? version);

rmSync(folder, { recursive: true, force: true });
for (const language of LANGUAGES) {
  for (const state of STATES) {
    await using rig = await makeRun(language, state);
    await saveRecording(rig, join(folder, language, state));
    console.log(`recorded ${language}/${state}`);
  }
}
