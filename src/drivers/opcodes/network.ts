// Whether this system lets us start a program without a network, found out by doing so once. The program still has its own
// loopback where that can be had: a server and its client within one validator find each other, and nobody else.

import { execFile } from 'node:child_process';
import { shellWord } from '../../ir/quote.ts';

export type NetworkDenial =
  | {
      readonly kind: 'denied';
      /** By which means; for people. */
      readonly how: string;
      /** Put in front of the words of a command. */
      readonly prefix: string;
    }
  | { readonly kind: 'open'; readonly why: string };

export function networkDenial(environment: Readonly<Record<string, string>>): Promise<NetworkDenial> {
  const path = environment['PATH'] ?? '';
  const known = probes.get(path);
  if (known !== undefined) return known;
  const probed = probe(path);
  probes.set(path, probed);
  return probed;
}

/** It does not change while the machine runs; which programs are found depends on PATH. */
const probes = new Map<string, Promise<NetworkDenial>>();

const PROBE = `for how in -n -rn; do
  unshare "$how" true 2>/dev/null || continue
  unshare "$how" ip link set lo up 2>/dev/null && echo "$how lo" || echo "$how"
  exit 0
done
unshare -n true`;

const LOOPBACK = shellWord('ip link set lo up 2>/dev/null;exec "$@"');

function probe(path: string): Promise<NetworkDenial> {
  return new Promise((resolve) => {
    const settings = { env: { PATH: path, LC_ALL: 'C' }, timeout: PROBE_MS };
    execFile('/bin/sh', ['-c', PROBE], settings, (error, stdout, stderr) => {
      const [how, loopback] = stdout.trim().split(' ');
      if (error !== null || how === undefined || how === '') {
        resolve({ kind: 'open', why: stderr.trim().split('\n').at(-1) || (error?.message ?? 'unshare said nothing') });
      } else if (loopback === undefined) {
        resolve({ kind: 'denied', how: `unshare ${how}, without a loopback`, prefix: `unshare ${how}` });
      } else {
        resolve({ kind: 'denied', how: `unshare ${how}`, prefix: `unshare ${how} sh -c ${LOOPBACK} sh` });
      }
    });
  });
}

const PROBE_MS = 5_000;
