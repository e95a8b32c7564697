// A recorded run, as files that can be committed and restored in another folder:
//
//   ../program.json   the Program, the same for all runs of a language
//   journal.jsonl     the journal
//   status.json       what `meow status --json` of that version said about the run
//   files.json        the rest of the project, as path → text (or bytes as base64)
//
// The path of the project is /project in all of them, and the machine's boot id is zero. Checksums and hashes are those of
// these texts, so that a recording is a valid run by itself; a restored one is sealed anew for the path it is restored to.

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { Rig } from '../rig/rig.ts';

const PROJECT = '/project';
const RUN = '.meow/workflows/r';
const BOOT_ID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

type Files = Readonly<Record<string, string | { readonly base64: string }>>;

export async function saveRecording(rig: Rig, folder: string): Promise<void> {
  const status = `${JSON.stringify(await rig.status('r'))}\n`;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const run = moved(
    { journal: rig.read(`${RUN}/journal.jsonl`), program: rig.read(`${RUN}/program.json`) },
    rig.folder,
    PROJECT,
  );
  writeFileSync(join(folder, 'journal.jsonl'), run.journal);
  const program = join(folder, '../program.json');
  if (!existsSync(program)) writeFileSync(program, run.program);
  else if (readFileSync(program, 'utf8') !== run.program) throw new Error(`another program than ${program}`);
  writeFileSync(join(folder, 'status.json'), status.replaceAll(rig.folder, PROJECT));
  writeFileSync(join(folder, 'files.json'), `${JSON.stringify(filesOf(rig), null, 1)}\n`);
}

/** A project with the run in it, and what `meow status --json` said when it was recorded. */
export async function restoreRecording(folder: string): Promise<{ readonly rig: Rig; readonly status: unknown }> {
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8');
  const rig = await Rig.setup();
  const files = JSON.parse(read('files.json')) as Files;
  // A repository that was recorded takes the place of the rig's own.
  if ('.git/HEAD' in files) rmSync(rig.path('.git'), { recursive: true });
  for (const [path, content] of Object.entries(files)) {
    if (typeof content !== 'string') rig.write(path, Buffer.from(content.base64, 'base64'));
    else rig.write(path, content.replaceAll(PROJECT, rig.folder));
  }
  for (const folder of ['.git/objects', '.git/refs']) mkdirSync(rig.path(folder), { recursive: true });
  const run = moved({ journal: read('journal.jsonl'), program: read('../program.json') }, PROJECT, rig.folder);
  rig.write(`${RUN}/journal.jsonl`, run.journal);
  rig.write(`${RUN}/program.json`, run.program);
  // Folders of runs are the owner's alone, and others are refused.
  await rig.shell('chmod -R go= .meow/workflows');
  return { rig, status: JSON.parse(read('status.json').replaceAll(PROJECT, rig.folder)) as unknown };
}

interface RunTexts {
  readonly journal: string;
  readonly program: string;
}

/** With another path of the project, and the checksums and the hash that belong to it. */
function moved({ journal, program }: RunTexts, from: string, to: string): RunTexts {
  const [, hash = '', old = ''] = /^\{"hash":"(\w+)","program":(.*)\}\n$/.exec(program) ?? [];
  const moved = old.replaceAll(from, to);
  const newHash = createHash('sha256').update(moved).digest('hex');
  const lines = journal.split('\n').map((line) => sealed(line.replaceAll(from, to).replaceAll(hash, newHash)));
  return { journal: lines.join('\n'), program: `{"hash":"${newHash}","program":${moved}}\n` };
}

/** A line that was cut off has no checksum, and gets none. */
function sealed(line: string): string {
  const [, body] = /^(.*),"crc":"[0-9a-f]{8}"\}$/.exec(line) ?? [];
  if (body === undefined) return line;
  return `${body},"crc":"${crc32(`${body}}`).toString(16).padStart(8, '0')}"}`;
}

function filesOf(rig: Rig): Files {
  const conductor = rig.exists('.git/meow');
  const paths = readdirSync(rig.folder, { recursive: true, encoding: 'utf8' })
    .filter((path) => statSync(rig.path(path), { throwIfNoEntry: false })?.isFile() === true)
    .filter((path) => !isLeftOut(path) && (conductor || !path.startsWith('.git/')))
    .toSorted();
  return Object.fromEntries(paths.map((path) => [path, contentOf(rig, path)]));
}

/** The run itself is beside it; the rest is derived from it, of no use to another process, or made by git. */
function isLeftOut(path: string): boolean {
  return (
    [`${RUN}/journal.jsonl`, `${RUN}/program.json`, `${RUN}.yaml`].includes(path) ||
    /\.lock$|\.began$|^hold$|^\.meow\/run\//.test(path) ||
    /^\.git\/(logs|COMMIT_EDITMSG)/.test(path)
  );
}

function contentOf(rig: Rig, path: string): Files[string] {
  const bytes = readFileSync(rig.path(path));
  const text = bytes.toString('utf8');
  if (!Buffer.from(text).equals(bytes) || text.includes('\0')) return { base64: bytes.toString('base64') };
  return (path.endsWith('/status') ? text.replaceAll(BOOT_ID, ZERO) : text).replaceAll(rig.folder, PROJECT);
}

const ZERO = '00000000-0000-0000-0000-000000000000';
