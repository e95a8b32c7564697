// Something else in the place of a file that a run is about to write: a link, a pipe, a socket, a folder. Nothing is written
// elsewhere, nothing waits, the run goes on, and SIGTERM ends it (sys/files.ts, guard/1 to guard/4).

import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ConductorRig, gate, rollback, work } from '../fixtures/conductor/rig.ts';
import { Live, MEOW, Rig, shellStep } from '../rig/rig.ts';
import { sample } from '../rig/sample.ts';

/** With `$V` a file and `$D` a folder that nobody may write to, `$W` the folder of runs, and `$R` the folder of the run. */
const SOCKET = `perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => shift, Listen => 1) or die'`;

const PLANTS: Readonly<Record<string, (path: string) => string>> = {
  link: (path) => `ln -s "$V" ${path}`,
  'hard link': (path) => `ln "$V" ${path}`,
  'link to a folder': (path) => `ln -s "$D" ${path}`,
  'broken link': (path) => `ln -s "$D/new" ${path}`,
  pipe: (path) => `mkfifo ${path}`,
  // Somebody reads, so that opening for writing does not fail.
  'pipe with a reader': (path) => `mkfifo ${path}; (cat ${path} > /dev/null &)`,
  socket: (path) => `${SOCKET} ${path}`,
  folder: (path) => `mkdir ${path}; echo mine > ${path}/mine`,
};

const PLACES = ['"$R/steps/next.1.stdout"', '"$R/steps/next.1.stderr"', '"$R/steps/next.1.status"', '"$W/w.yaml.tmp"'];

/** Acts with more than one command. */
const ACTS: Readonly<Record<string, string>> = {
  'a link instead of the folder of all steps': 'rm -rf "$R/steps"; ln -s "$D" "$R/steps"',
  'a pipe instead of the folder of all steps': 'rm -rf "$R/steps"; mkfifo "$R/steps"',
  'a file instead of the folder of all steps': 'rm -rf "$R/steps"; echo > "$R/steps"',
  // The engine may write it at the same moment.
  'a link instead of the state file': 'until rm -f "$W/w.yaml"; ln -s "$V" "$W/w.yaml"; do :; done',
  'a pipe instead of the state file': 'until rm -f "$W/w.yaml"; mkfifo "$W/w.yaml"; do :; done',
  'a folder instead of the state file': 'until rm -f "$W/w.yaml"; mkdir "$W/w.yaml"; do :; done',
  'links at all names of the state file':
    'for n in tmp new bak; do ln -s "$V" "$W/w.yaml.$n"; ln -s "$V" "$R/w.yaml.$n"; done',
  'a pipe for the kept output': 'mkdir -p "$R/steps/next.1.outputs"; mkfifo "$R/steps/next.1.outputs/big"',
  'a link for the kept output': 'mkdir -p "$R/steps/next.1.outputs"; ln -s "$V" "$R/steps/next.1.outputs/big"',
  'a link for the folder of kept outputs': 'ln -s "$D" "$R/steps/next.1.outputs"',
};

const all = [
  ...PLACES.flatMap((place) =>
    Object.entries(PLANTS).map(([what, plant]) => [`${what} at ${place}`, plant(place)] as const),
  ),
  ...Object.entries(ACTS),
];

/** `busy`: so many steps first that the helper in perl starts the processes. */
async function setup(act: string, busy: number): Promise<Rig> {
  const rig = await Rig.setup();
  rig.write('../victim', 'precious\n');
  mkdirSync(rig.path('../vault'));
  const names = `V='${rig.path('../victim')}' D='${rig.path('../vault')}' W='${rig.path('.meow/workflows')}' R='${rig.path('.meow/workflows/w')}'`;
  rig.write('evil', `${names}\n${act}\n`);
  const first = Array.from({ length: busy }, (_, at) => `b${at}`);
  const chain = first.map((id, at) => shellStep(id, 'true', at === 0 ? '' : `needs = ["b${at - 1}"]`));
  const big = 'shell_outputs = { big = { source = "stdout" } }';
  const next = `echo next >> ran; echo error >&2; head -c 1500000 /dev/zero | tr '\\\\0' x`;
  rig.write(
    'w.meow.toml',
    `[main]\n${chain.join('')}${shellStep('evil', 'sh ./evil', busy === 0 ? '' : `needs = ["b${busy - 1}"]`)}${shellStep('next', next, `needs = ["evil"]\n${big}`)}`,
  );
  return rig;
}

/** Of the hostile step itself, its own shell records the end wherever the step leads it. */
function intruders(rig: Rig): readonly string[] {
  return readdirSync(rig.path('../vault')).filter((name) => !name.startsWith('evil.'));
}

/** A sample of the acts with each way to start processes. */
describe.for([
  ['with a process started by the engine', 0, 0],
  ['with a process started by the helper', 10, 2],
] as const)('%s', ([, busy, first]) => {
  test.for(sample(all, first))('%s', async ([, act]) => {
    await using rig = await setup(act, busy);
    const { code, stderr } = await rig.meow('run', 'w.meow.toml', '--id', 'w');
    expect({ code, stderr, ran: rig.read('ran') }).toEqual({ code: 0, stderr: '', ran: 'next\n' });
    expect(rig.read('../victim')).toBe('precious\n');
    expect(intruders(rig)).toEqual([]);
    expect((await rig.status('w')).steps['next']).toMatchObject({ status: 'done', attempt: 1 });
    expect(rig.read('.meow/workflows/w/steps/next.1.stderr')).toBe('error\n');
    expect(rig.read('.meow/workflows/w.yaml')).toContain('status: done');
  });
});

test.each([
  ['a command', shellStep('use', 'wc -c <<END\n{{make.outputs.big}}\nEND\n', 'needs = ["spoil"]')],
  [
    'a foreach',
    `[[main.steps]]\nid = "use"\nexecutor = "foreach"\nneeds = ["spoil"]\nitems = "{{make.outputs.big}}"\nitem_var = "item"\ntemplate = ".one"\n`,
  ],
])('an output over 1 MB that another step has changed is not used by %s', async (_what, use) => {
  await using rig = await Rig.setup();
  const big = `printf '["%s"]' $(head -c 1500000 /dev/zero | tr '\\0' x)`;
  const make = shellStep('make', `${big} > big; cat big`, 'shell_outputs = { big = { source = "stdout" } }');
  const spoil = shellStep('spoil', 'sed -i s/x/y/ .meow/workflows/w/steps/make.1.outputs/big', 'needs = ["make"]');
  rig.write(
    'w.meow.toml',
    `[main]\n${make}${spoil}${use}[one]\n[[one.steps]]\nid = "x"\nexecutor = "shell"\ncommand = "true"\n`,
  );
  expect((await rig.meow('run', 'w.meow.toml', '--id', 'w')).code).toBe(1);
  expect((await rig.status('w')).steps['use']).toMatchObject({
    error: { message: expect.stringContaining('make.1.outputs/big has changed since its step left it there') },
  });
});

describe('a run whose own folder was replaced by a link', () => {
  test.for([
    ['the folder of the run', 'mv "$R" "$R.x"; ln -s "$D" "$R"'],
    ['the folder of all runs', 'mv "$W" "$W.x"; mkdir "$D/w"; ln -s "$D" "$W"'],
  ])('%s: starts nothing more, and writes nothing there', async ([, act]) => {
    await using rig = await setup(act ?? '', 0);
    const { code, stderr, stdout } = await rig.meow('run', 'w.meow.toml', '--id', 'w');
    expect(code).toBe(1);
    expect(stdout + stderr).toContain('somebody has put another folder in its place');
    expect(rig.exists('ran')).toBe(false);
    expect(intruders(rig).filter((name) => name !== 'w')).toEqual([]);
  });
});

test.for(['status', 'stdout', 'stderr'])(
  'planted while the run has no engine, %s is replaced on resume',
  async (name) => {
    for (const plant of ['pipe', 'folder', 'link']) {
      await using rig = await setup(
        'kill -9 $(sed "s/.*\\"pid\\":\\([0-9]*\\).*/\\1/" "$W/w.yaml.lock"); sleep 0.3',
        0,
      );
      const path = `.meow/workflows/w/steps/next.1.${name}`;
      expect((await rig.meow('run', 'w.meow.toml', '--id', 'w')).code).toBe(137);
      await rig.shell(`V=${rig.path('../victim')} D=${rig.path('../vault')}; ${PLANTS[plant]?.(path)}`);
      const { code, stderr } = await rig.meow('resume', 'w');
      expect({ code, stderr, ran: rig.read('ran') }).toEqual({ code: 0, stderr: '', ran: 'next\n' });
      expect(rig.read('../victim')).toBe('precious\n');
    }
  },
);

describe.each([
  ['started by the engine', 0],
  ['started by the helper', 10],
] as const)('a forged record of a command %s', (_by, busy) => {
  test('does not replace the command', async () => {
    const forge =
      'for d in next.1. next/1/; do mkdir -p "$R/steps/next/1"; { cat "$R/steps/evil.1.status"; echo "exit 0"; } > "$R/steps/${d}status"; echo lie > "$R/steps/${d}stdout"; done';
    await using rig = await setup(forge, busy);
    const { code, stderr } = await rig.meow('run', 'w.meow.toml', '--id', 'w');
    expect({ code, stderr, ran: rig.read('ran') }).toEqual({ code: 0, stderr: '', ran: 'next\n' });
    expect((await rig.meow('logs', 'w', 'next')).stdout).not.toContain('lie');
  });
});

test('a step that puts a pipe in the place of its own record ends the run neither with a bug nor in a hang', async () => {
  const act = 'rm "$R/steps/evil.1.status"; mkfifo "$R/steps/evil.1.status"; kill -9 $PPID';
  for (const busy of [0, 10]) {
    await using rig = await setup(act, busy);
    const run = rig.start('run', 'w.meow.toml', '--id', 'w');
    const { code } = await run.ended;
    expect(code).toBe(1);
  }
});

test('SIGTERM ends an engine with pipes in all its places', async () => {
  const places = [...PLACES, '"$W/w.yaml"', '"$R/engine.log"'].map((place) => `rm -f ${place}; mkfifo ${place}`);
  await using rig = await setup(`${places.join('; ')}; echo > planted; sleep 60`, 0);
  const run = new Live(MEOW, ['run', 'w.meow.toml', '--id', 'w'], rig.folder, rig.environment);
  await rig.appears('planted');
  run.kill('SIGTERM');
  expect((await run.ended).code).toBe(143);
});

describe('in the directory of a Conductor run', () => {
  const D = '"$MEOW_RUN_DIR"';
  const acts: Readonly<Record<string, string>> = {
    'links at temporary names': `for n in tmp new; do for f in status.json metadata.json events.ndjson; do ln -s "$V" ${D}/$f.$n; done; done`,
    'pipes at temporary names': `for n in tmp new; do for f in status.json metadata.json events.ndjson; do mkfifo ${D}/$f.$n; done; done`,
    'links at the names': `for f in status.json transcript.md final-state.txt diff.patch; do rm -f ${D}/$f; ln -s "$V" ${D}/$f; done`,
    'pipes at the names': `for f in status.json transcript.md final-state.txt diff.patch; do rm -f ${D}/$f; mkfifo ${D}/$f; done`,
    'folders at the names': `for f in status.json transcript.md final-state.txt diff.patch; do rm -f ${D}/$f; mkdir ${D}/$f; done`,
    'a link instead of the directory': `mv ${D} ${D}.x; ln -s "$D" ${D}`,
    'a pipe instead of the directory': `mv ${D} ${D}.x; mkfifo ${D}`,
    'a link instead of its parent': `p=$(dirname ${D}); mv "$p" "$p.x"; ln -s "$D" "$p"`,
    'a link instead of artifacts': `rm -rf ${D}/artifacts; ln -s "$D" ${D}/artifacts`,
    'a file instead of artifacts': `rm -rf ${D}/artifacts; echo > ${D}/artifacts`,
    'a pipe instead of artifacts': `rm -rf ${D}/artifacts; mkfifo ${D}/artifacts`,
    'a link instead of a visit': `mkdir -p ${D}/artifacts; ln -s "$D" ${D}/artifacts/back`,
  };

  test.for(Object.entries(acts))('%s: the rollback happens, and nothing is written elsewhere', async ([, act]) => {
    await using made = await ConductorRig.setup({ 'kept.txt': 'kept\n' });
    const { rig } = made;
    rig.write('../victim', 'precious\n');
    mkdirSync(rig.path('../vault'));
    const names = `V='${rig.path('../victim')}' D='${rig.path('../vault')}'`;
    made.agents({ work: `${names}\n${act}\necho bad > kept.txt; echo done` });
    made.workflow({
      work: work('back'),
      back: rollback('pre_run', 'end'),
      end: { opcode: 'STOP', verdict: 'success' },
    });
    const { code, stderr } = await made.run();
    expect(code).toBe(0);
    // It may find the directory missing or replaced, in the moment in which the agent does that.
    expect(stderr).toMatch(/^(?:meow: cannot write .*\n)*$/);
    expect(await made.outcomes()).toContain('back#1 completed');
    expect(rig.read('.meow/worktrees/r/kept.txt')).toBe('kept\n');
    expect(rig.read('../victim')).toBe('precious\n');
    expect(readdirSync(rig.path('../vault'))).toEqual([]);
    expect(JSON.parse(readFileSync(rig.path('.meow/run/r/status.json'), 'utf8'))).toMatchObject({ status: 'done' });
  });

  test('an agent that changes the metadata does not keep the run from being resumed', async () => {
    await using made = await ConductorRig.setup();
    const { rig } = made;
    made.agents({ work: `echo '{"run_id":"other","mark":"x"}' > ${D}/metadata.json; echo done` });
    made.workflow({ work: work('ask'), ask: gate({ gate_approved: 'STOP', gate_rejected: 'STOP' }) });
    expect((await made.run('--no-wait')).code).toBe(3);
    expect((await rig.meow('approve', 'r', 'ask')).code).toBe(0);
    expect(await rig.meow('resume', 'r')).toMatchObject({ code: 0, stderr: '' });
    expect(JSON.parse(rig.read('.meow/run/r/metadata.json'))).toMatchObject({ run_id: 'r' });
  });
});

describe('JSON of another shape in the place of all records of an agent', () => {
  const values = ['{"how":"other"}', '{"kind":{},"id":5,"session":[],"state":7}', '5', '[1]', 'null', 'no JSON', ''];

  test.for(values)('%s: the agent works on, or its step fails', async (value) => {
    await using rig = await Rig.setup();
    rig.write('value', value);
    // Records that do not exist yet are planted as well.
    rig.write(
      'agent',
      `cat > prompt; for folder in $(find .meow/workflows/w/agents -type d); do cp value $folder/turn-end.json; done
find .meow/workflows/w/agents .meow/workflows/w/sessions.jsonl -type f ! -name '*status' ! -name 'std*' | while read -r path; do cp value "$path"; done
echo done\n`,
    );
    const agent = (id: string, needs: string): string =>
      `[[main.steps]]\nid = "${id}"\nexecutor = "agent"\nagent = "a"\nprompt = "Work."\nneeds = ["${needs}"]\n`;
    rig.write(
      'w.meow.toml',
      `[main]\n[[main.steps]]\nid = "start"\nexecutor = "spawn"\nagent = "a"\nadapter = "command"\nspawn_args = "sh ./agent"\n${agent('one', 'start')}${agent('two', 'one')}[[main.steps]]\nid = "end"\nexecutor = "kill"\nagent = "a"\nneeds = ["two"]\n`,
    );
    const { code, stderr } = await rig.meow('run', 'w.meow.toml', '--id', 'w');
    expect([0, 1], stderr).toContain(code);
    expect((await rig.meow('resume', 'w')).code).not.toBe(70);
  });
});
