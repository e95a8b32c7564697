// Tests once whether this system can start a program without network access. The program keeps its own loopback if
// possible, so a server and its client inside one validator can connect.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { writePrivate } from '../../sys/private-file.ts';

export type NetworkDenial =
  | {
      readonly kind: 'denied';
      /** The method, for people. */
      readonly how: string;
      /** Prefix of the command. */
      readonly prefix: readonly string[];
      /** A private loopback is possible. */
      readonly loopback: boolean;
    }
  | { readonly kind: 'open'; readonly why: string };

/** The command without network. `folder`: for a file of ours. */
export function withoutNetwork(denial: NetworkDenial, words: readonly string[], folder: string): readonly string[] {
  if (denial.kind === 'open') return words;
  return denial.loopback ? [...denial.prefix, 'sh', loopbackFile(folder), ...words] : [...denial.prefix, ...words];
}

/** In a file: inside the command, it would look like a change of its own shell (drivers/recording-shell.ts). */
function loopbackFile(folder: string): string {
  const path = join(folder, 'loopback.sh');
  if (!existsSync(path)) writePrivate(path, 'ip link set lo up 2>/dev/null\nexec "$@"\n');
  return path;
}

export function networkDenial(environment: Readonly<Record<string, string>>): Promise<NetworkDenial> {
  const path = environment['PATH'] ?? '';
  const known = probes.get(path);
  if (known !== undefined) return known;
  const probed = probe(path);
  probes.set(path, probed);
  return probed;
}

/** Constant while the machine runs; the programs depend on PATH. */
const probes = new Map<string, Promise<NetworkDenial>>();

const PROBE = `for how in -n -rn; do
  unshare "$how" true 2>/dev/null || continue
  unshare "$how" ip link set lo up 2>/dev/null && echo "$how lo" || echo "$how"
  exit 0
done
unshare -n true`;

function probe(path: string): Promise<NetworkDenial> {
  return new Promise((resolve) => {
    const settings = { env: { PATH: path, LC_ALL: 'C' }, timeout: PROBE_MS };
    execFile('/bin/sh', ['-c', PROBE], settings, (error, stdout, stderr) => {
      const [how, loopback] = stdout.trim().split(' ');
      if (error !== null || how === undefined || how === '') {
        resolve({ kind: 'open', why: stderr.trim().split('\n').at(-1) || (error?.message ?? 'unshare said nothing') });
      } else {
        const has = loopback !== undefined;
        const words = `unshare ${how}${has ? '' : ', without a loopback'}`;
        resolve({ kind: 'denied', how: words, prefix: ['unshare', how], loopback: has });
      }
    });
  });
}

const PROBE_MS = 5_000;
