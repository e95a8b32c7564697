// Replaces an engine that a test kills: opens a run, says so, and appends one record after the other. Each line of its
// output is a number: 0 once the run is open, then that of each record when it is durable.
//
// arguments: FOLDER RUN_ID PIDFILE    the pid of a child that outlives it goes into PIDFILE

import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';

import { present } from '../../src/base/errors.ts';
import { fileStore } from '../../src/stores/files.ts';
import { aProgram, aRecord } from './store-samples.ts';

const [folder, runId, pidFile] = process.argv.slice(2);
const store = fileStore({ folder: present(folder, 'FOLDER is missing') });
const journal = await store.create(present(runId, 'RUN_ID is missing'), aProgram());

const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
child.unref();
writeFileSync(present(pidFile, 'PIDFILE is missing'), String(child.pid));

process.stdout.write('0\n');
for (let seq = 1; ; seq += 3) {
  await journal.append([aRecord(seq), aRecord(seq + 1), aRecord(seq + 2, 'x'.repeat(5_000))]);
  process.stdout.write(`${seq + 2}\n`);
}
