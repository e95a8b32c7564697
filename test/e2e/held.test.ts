// A full disk, simulated by a process limit on the size of files.

import { describe, expect, test } from 'vitest';
import { Rig, shellStep } from '../rig/rig.ts';

const CHAIN = `[main]\n${Array.from({ length: 12 }, (_, index) =>
  shellStep(`s${index}`, `echo s${index} >> ran`, index === 0 ? '' : `needs = ["s${index - 1}"]`),
).join('')}`;

/** In units of 512 bytes: the program fits, the journal of the whole run does not. */
const LIMIT = 'ulimit -f 12';

test('a journal that cannot be written holds the run, which resumes where it left off', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', CHAIN);
  const { stderr, code } = await rig.shell(`${LIMIT}; meow run w.meow.toml --id h`);
  const journal = rig.path('.meow/workflows/h/journal.jsonl');
  expect(stderr).toBe(
    `meow: run h is held: its journal cannot be written, the file would become larger than allowed (EFBIG: ${journal})
  nothing more was started; raise the limit on the size of files (ulimit -f), then: meow resume h
`,
  );
  expect(code).toBe(3);
  const done = rig.decisions('h').filter((decision) => decision.startsWith('step-done'));
  expect(done.length).toBeGreaterThan(0);
  expect(rig.decisions('h')).not.toContain('run-ended');

  expect((await rig.meow('resume', 'h')).code).toBe(0);
  const ran = rig.read('ran').trimEnd().split('\n');
  expect(ran).toEqual(Array.from({ length: 12 }, (_, index) => `s${index}`));
});

test('a folder in the place of the state file is moved aside, and the run continues until its journal is too large', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', CHAIN);
  rig.write('.meow/workflows/h.yaml/in-the-way', '');
  const { stderr, code } = await rig.shell(`${LIMIT}; meow run w.meow.toml --id h`);
  expect(code).toBe(3);
  expect(stderr).toMatch(/^meow: run h is held: .*\n.*\n$/);
  expect(rig.files('.meow/workflows').some((name) => /h\.yaml\.aside-\w+\/in-the-way$/.test(name))).toBe(true);
});

test.for(['', '--detach'])('a run whose first record cannot be written leaves no trace %s', async (flag) => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', CHAIN);
  const args = ['--id', 'h', '--meta', `long=${'x'.repeat(8_000)}`, flag].join(' ');
  expect(await rig.shell(`${LIMIT}; meow run w.meow.toml ${args}`)).toEqual({
    stdout: '',
    stderr: `meow: cannot create the run h: the file would become larger than allowed (EFBIG: ${rig.path('.meow/workflows/h/journal.jsonl')})
  raise the limit on the size of files (ulimit -f), then try again
`,
    code: 2,
  });
  expect(rig.files()).toEqual(['w.meow.toml']);
});

describe('a full disk', () => {
  const STEPS = `[main]
cleanup_on_success = "echo cleanup >> ../ran"
${shellStep('fill', 'echo fill >> ../ran; head -c 9000000 /dev/zero > fill.bin; true')}
${shellStep('b', 'echo b >> ../ran', 'needs = ["fill"]\non_error = "continue"\nretry = { max_attempts = 3 }')}
${shellStep('c', 'echo c >> ../ran', 'needs = ["b"]')}`;

  test.for(['64', '160', '304'])(
    'holds the run before a step without room for its files (%s KB); with room, it continues',
    async (size, context) => {
      await using rig = await Rig.setup();
      rig.write('w.meow.toml', STEPS);
      const result = await rig.onDisk(
        `size=${size}k`,
        'cp ../w.meow.toml . && mkdir .meow && { meow run w.meow.toml --id h; echo "run: $?"; rm fill.bin; meow resume h; }',
      );
      if (result === null) return context.skip('nothing may be mounted here');
      const { stdout, stderr, code } = result;
      expect(stderr).toMatch(
        /^meow: run h is held: .* cannot be written, the disk is full \(ENOSPC: .*\)\n {2}nothing more was started; free some space, then: meow resume h\n$/m,
      );
      expect(stdout).toContain('run: 3\n');
      expect(stdout).not.toContain('failed');
      expect(code).toBe(0);
      expect(rig.read('ran')).toBe('fill\nb\nc\ncleanup\n');
    },
  );

  const FILL = shellStep('fill', 'head -c 9000000 /dev/zero > fill.bin; true');
  const SPAWN = '[[main.steps]]\nid = "start"\nexecutor = "spawn"\nagent = "worker"\nadapter = "fox"\n';
  const WORK = '[[main.steps]]\nid = "work"\nexecutor = "agent"\nagent = "worker"\nprompt = "Go."\nneeds = ["start"]\n';
  const END = '[[main.steps]]\nid = "end"\nexecutor = "kill"\nagent = "worker"\nneeds = ["work"]\n';
  const FOX = `while :; do printf 'fox> '; IFS= read -r line || exit 0; case $line in *'meow done'*) echo go >> ../ran; meow done ;; esac; done\n`;
  const ADAPTERS = {
    headless: '[headless]\ncommand = "cat; echo go >> ../ran"\n',
    terminal: `[spawn]\ncommand = "sh ../fox"\n[ready]\npatterns = ['^fox>']\n`,
  };
  const CASES = {
    'an agent': `[main]\n${FILL}${SPAWN}needs = ["fill"]\n${WORK}${END}`,
    'a prompt': `[main]\n${SPAWN}${FILL}needs = ["start"]\n${WORK.replace('"start"', '"start", "fill"')}${END}`,
  };
  const together = Object.entries(CASES).flatMap(([what, workflow]) =>
    Object.entries(ADAPTERS).map(([channel, adapter]) => [what, channel, workflow, adapter] as const),
  );

  test.for(together)(
    'holds the run before %s without room for its files (%s); with room, it continues',
    async ([, , workflow, adapter], context) => {
      await using rig = await Rig.setup();
      rig.write('w.meow.toml', workflow);
      rig.write('fox', FOX);
      rig.write('.meow/adapters/fox/adapter.toml', `[adapter]\nname = "fox"\n${adapter}`);
      const result = await rig.onDisk(
        'size=400k',
        'cp -r ../w.meow.toml ../.meow . && { meow run w.meow.toml --id h; echo "run: $?"; rm fill.bin; meow resume h; }',
      );
      if (result === null) return context.skip('nothing may be mounted here');
      const { stdout, stderr, code } = result;
      expect(stderr).toMatch(/^meow: run h is held: .* cannot be written, the disk is full \(ENOSPC: .*\)\n/m);
      expect(stdout).toContain('run: 3\n');
      expect(stdout).not.toContain('failed');
      expect(code).toBe(0);
      expect(rig.read('ran')).toBe('go\n');
    },
  );

  test('holds the run before a turn without room for its files; with room, it continues', async (context) => {
    await using rig = await Rig.setup();
    rig.write(
      '.meow/adapters/ray/adapter.toml',
      '[adapter]\nname = "ray"\n[headless]\ncommand = "sh ../ray"\nreader = "text"\nsession_id = "none"\n',
    );
    const answers = `*begin*) echo '<goto>FILL.sh</goto>' ;; *) echo last >> ../ran; echo '<result>fine</result>' ;;`;
    rig.write('ray', `case $(cat) in ${answers} esac\n`);
    rig.write('wf/START.md', 'begin\n');
    rig.write('wf/FILL.sh', 'echo "<goto>LAST.md</goto>"; head -c 9000000 /dev/zero > fill.bin; true\n');
    rig.write('wf/LAST.md', 'the last one\n');
    const result = await rig.onDisk(
      'size=400k',
      'cp -r ../wf ../.meow . && { meow run wf --id h --adapter ray; echo "run: $?"; rm fill.bin; meow resume h; }',
    );
    if (result === null) return context.skip('nothing may be mounted here');
    const { stdout, stderr, code } = result;
    expect(stderr).toMatch(/^meow: run h is held: .* cannot be written, the disk is full \(ENOSPC: .*\)\n/m);
    expect(stdout).toContain('run: 3\n');
    expect(code).toBe(0);
    expect(rig.read('ran')).toBe('last\n');
  });
});
