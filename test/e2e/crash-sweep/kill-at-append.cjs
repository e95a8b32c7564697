// Preloaded into the engine by the crash sweep (NODE_OPTIONS=--require): kills it with -9 at one chosen moment of one
// chosen append to the journal. The product has no such hook, so it is put around the file handle that it opens.
//
//   KILL_AT=3:torn       the third append, by this process, leaves half of what it wrote
//   KILL_AT=3:durable    … is durable, and nothing that it asks for has been started

'use strict';

const promises = require('node:fs/promises');

const [count, moment] = (process.env.KILL_AT ?? '').split(':');
const { open } = promises;
let appends = 0;

function die() {
  process.kill(process.pid, 'SIGKILL');
  // The signal may take a moment, and not one more line may run.
  for (;;);
}

promises.open = async (path, ...rest) => {
  const handle = await open(path, ...rest);
  if (!String(path).endsWith('journal.jsonl')) return handle;
  const { write } = handle;
  handle.write = async (bytes, ...more) => {
    appends += 1;
    if (appends === Number(count) && moment === 'torn') {
      await write.call(handle, bytes.subarray(0, Math.floor(bytes.length / 2)));
      die();
    }
    const written = await write.call(handle, bytes, ...more);
    if (appends === Number(count) && moment === 'durable') die();
    return written;
  };
  return handle;
};
