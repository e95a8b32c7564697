// Preloaded into an engine (NODE_OPTIONS=--require): kills it with -9 when it writes a certain text, be it to its journal or
// to what it keeps of an agent. It is for that process alone: nothing that it starts has it.
//
//   KILL_WHEN='before:{"kind":"put"}'    nothing of it is written
//   KILL_WHEN='after:{"kind":"put"}'     it is written, and not one line more has run

'use strict';

const fs = require('node:fs');
const promises = require('node:fs/promises');

const [, moment, text] = /^(before|after):(.*)$/s.exec(process.env.KILL_WHEN);
delete process.env.KILL_WHEN;
delete process.env.NODE_OPTIONS;

function die() {
  process.kill(process.pid, 'SIGKILL');
  // The signal may take a moment, and not one more line may run.
  for (;;);
}

/** A file that has the text, on its way to its name: its path, or a descriptor, which the next rename is about. */
let written = null;
const { writeFileSync, renameSync } = fs;
fs.writeFileSync = (path, data, ...rest) => {
  const fits = typeof data === 'string' && data.includes(text);
  if (fits && moment === 'before') die();
  writeFileSync(path, data, ...rest);
  if (fits) written = path;
};
fs.renameSync = (from, to) => {
  renameSync(from, to);
  if (from === written || typeof written === 'number') die();
};

const { open } = promises;
promises.open = async (path, ...rest) => {
  const handle = await open(path, ...rest);
  if (!String(path).endsWith('journal.jsonl')) return handle;
  const { write } = handle;
  handle.write = async (bytes, ...more) => {
    const fits = Buffer.from(bytes).includes(text);
    if (fits && moment === 'before') die();
    const result = await write.call(handle, bytes, ...more);
    if (fits) die();
    return result;
  };
  return handle;
};
