// Copies what the steps of a run printed to where others read it.
//
//   ship/1  stdout and stderr of an attempt are complete there before its end is recorded.
//   ship/2  Of a long output, the first and the last 8 MiB are kept.
//   ship/3  Secrets are masked before the bytes leave the machine.

import { stepPrefixes } from '../drivers/step-folder.ts';
import type { RunFiles } from '../engine/ports.ts';
import type { JournalRecord } from '../kernel/decision.ts';
import { untilAnswered } from '../stores/postgres/run-journal.ts';
import type { Redactor } from '../sys/secrets.ts';

const END_BYTES = 8 * 1024 * 1024;

/** Returns a function that is called with records before they are appended. */
export function shipOutputs(
  from: RunFiles,
  to: RunFiles,
  redactor: () => Redactor,
): (records: readonly JournalRecord[]) => Promise<void> {
  const shipFile = async (path: string): Promise<void> => {
    const bytes = await from.read(path, 0, 2 * END_BYTES + 1);
    if (bytes === null || bytes.length === 0) return;
    const kept = bytes.length <= 2 * END_BYTES ? bytes : await endsOf(from, path);
    await untilAnswered(() => to.replace(path, redactor().redactBytes(kept)));
  };
  return async (records) => {
    const ended = records.flatMap(({ input }) => (input.kind === 'effect-finished' ? [input.effect] : []));
    const paths = ended.flatMap((effect) => {
      const at = effect.lastIndexOf('#');
      const prefixes = stepPrefixes(effect.slice(0, at), Number(effect.slice(at + 1)));
      return prefixes.flatMap((prefix) => [`${prefix}stdout`, `${prefix}stderr`]);
    });
    await Promise.all(paths.map(shipFile));
  };
}

async function endsOf(files: RunFiles, path: string): Promise<Uint8Array> {
  const name = path.slice(path.lastIndexOf('/') + 1);
  const entry = (await files.list(path.slice(0, -name.length - 1))).find((each) => each.name === name);
  const size = entry?.size ?? 0;
  const [first, last] = [await files.read(path, 0, END_BYTES), await files.read(path, size - END_BYTES, END_BYTES)];
  const left = Math.max(0, size - 2 * END_BYTES);
  const between = Buffer.from(`\n… ${left} bytes are left out here; they are on the machine of the run …\n`);
  return Buffer.concat([first ?? Buffer.alloc(0), between, last ?? Buffer.alloc(0)]);
}
