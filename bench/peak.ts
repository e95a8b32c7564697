// The peak memory of a process. The system's own figure (`maxrss`) of a child starts with that of its parent at the
// fork, so on Linux the process reads its own high-water mark instead.

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Bench, timeProcess } from './measure.ts';

/** In megabytes, of `node ARGS`. `more`: additional environment variables. */
export function peakOf(
  bench: Bench,
  args: readonly string[],
  cwd: string,
  more: Readonly<Record<string, string>> = {},
): number {
  const preload = join(bench.folder, 'peak.cjs');
  writeFileSync(preload, PRELOAD);
  timeProcess('node', ['--require', preload, ...args], cwd, more);
  return Number(readFileSync(join(bench.folder, 'peak'), 'utf8')) / 1000;
}

/** In kilobytes, to a file next to this one: stdout belongs to the command. */
const PRELOAD = `
const { readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');
process.on('exit', () => {
  let peak = process.resourceUsage().maxRSS;
  if (process.platform === 'linux') peak = /VmHWM:\\s*(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1];
  writeFileSync(join(__dirname, 'peak'), String(peak));
});
`;
