import { expect, test } from 'vitest';
import { Live, MEOW, Rig, shellStep, waitingStep } from '../rig/rig.ts';

/** A `meow` that throws an internal error as soon as a file `crash` exists. */
function faulty(rig: Rig, ...args: readonly string[]): Live {
  rig.write(
    'fault.cjs',
    `const { existsSync, watch } = require('node:fs');
     if (process.argv[1].endsWith('/meow')) {
       watch('.', () => { if (existsSync('crash')) throw new TypeError('a fault of ours'); }).unref();
     }`,
  );
  const environment = { ...rig.environment, NODE_OPTIONS: `--require=${rig.path('fault.cjs')}` };
  return new Live(MEOW, args, rig.folder, environment);
}

test('a bug in meow holds the run, says how to report it, and loses nothing', async () => {
  await using rig = await Rig.setup();
  rig.write(
    'w.meow.toml',
    `[main]\n${waitingStep('hold')}${shellStep('after', 'echo after >> ran', 'needs = ["hold"]')}`,
  );
  const run = faulty(rig, 'run', 'w.meow.toml', '--id', 'b');
  await rig.appears('hold.began');
  rig.write('crash', '');
  const { stderr, code } = await run.ended;
  expect(code).toBe(70);
  expect(stderr).toMatch(
    new RegExp(
      [
        '^meow: this is a bug in meow, not in your workflow',
        '  run b is held: its journal is complete, and nothing more is started',
        '  resume it: meow resume b',
        '  please report it with the lines below and what you did:',
        '  meow [\\d.]+, node v[\\d.]+, \\w+-\\w+, run b',
        '  TypeError: a fault of ours\\n      at ',
      ].join('\\n'),
    ),
  );
  rig.write('hold.go', '');
  expect((await rig.meow('resume', 'b')).code).toBe(0);
  expect(rig.read('ran')).toBe('hold\nafter\n');
});
