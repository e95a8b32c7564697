// The floor of everything that starts commands from Node: `sh -c true`, this many times and this many in parallel, and
// nothing else.

import { timeProcess } from './measure.ts';

/** In its own process, whose start is included. */
export function timeSpawnLoop(times: number, atOnce: number, cwd: string): number {
  return timeProcess('node', ['-e', SCRIPT, String(times), String(atOnce)], cwd);
}

const SCRIPT = `
const { spawn } = require('node:child_process');
let left = Number(process.argv[1]);
const next = () => {
  if (left === 0) return;
  left -= 1;
  spawn('sh', ['-c', 'true'], { stdio: 'ignore' }).once('exit', next);
};
for (let n = 0; n < Number(process.argv[2]); n++) next();
`;
