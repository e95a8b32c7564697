// Kills a run with all six opcodes with -9 at every append to its journal, at two moments of each, and resumes it. At
// any moment: the run ends the same, the journal starts every turn, validator and witness exactly once, each step's
// work is in the worktree once, the files for people are complete and in order, and the user's own tree is unchanged.

import { beforeAll, expect, test } from 'vitest';
import {
  ConductorRig,
  evaluate,
  events,
  gate,
  rollback,
  says,
  userTree,
  validate,
  work,
} from '../fixtures/conductor/rig.ts';
import { approvedByPerson, forEveryAppend, SWEEP_MS } from '../rig/crash-sweep.ts';

const KILLED = 137;

const CHECK = { id: 'check', kind: 'script', entrypoint: 'check.sh', artifacts: ['report.txt'] };

const WITNESS = { command: 'echo witnessed >> "$MEOW_RUN_DIR/ran"; grep two a.txt', expect: { output: 'two' } };

async function setup(): Promise<ConductorRig> {
  const made = await ConductorRig.setup(
    {
      'a.txt': 'one\n',
      'check.sh': '#!/bin/sh\necho checked >> "$MEOW_RUN_DIR/ran"; cat a.txt > report.txt\n',
    },
    `[conductor]
allowed_entrypoints = ["check.sh"]

[validators.person]
command = "echo person >> $MEOW_RUN_DIR/ran; cd $MEOW_RUN_DIR/../../../.agent; touch wanted; while [ ! -e decided ]; do sleep 0.02; done"
`,
  );
  made.agents({
    build: 'echo two >> a.txt; echo new > b.txt; echo built',
    spoil: 'echo three >> a.txt; rm b.txt; git commit -qam spoilt',
  });
  made.workflow({
    build: work('validate', { witness: WITNESS }),
    validate: validate('judge', ['person', CHECK]),
    judge: evaluate(`echo judged >> "$MEOW_RUN_DIR/ran"; ${says('needs_human')}`, { needs_human: 'ask' }),
    ask: gate({ gate_approved: 'note', gate_rejected: 'STOP' }, { approvers: ['ann'] }),
    note: { opcode: 'GATE', gate: 'queue_for_review', routes: { completed: 'spoil' } },
    spoil: work('undo'),
    undo: rollback('pre_step', 'end'),
    end: { opcode: 'STOP', reason: 'all six' },
  });
  // A tree with uncommitted work of the user.
  made.rig.write('a.txt', 'mine\n');
  made.rig.write('mine.txt', 'mine\n');
  return made;
}

function starts({ rig }: ConductorRig): readonly string[] {
  const records = rig.read('.meow/workflows/r/journal.jsonl').trimEnd().split('\n');
  return records.flatMap((line) => {
    const { decisions = [] } = JSON.parse(line) as { readonly decisions?: readonly StartDecision[] };
    return decisions.flatMap(({ kind, step, attempt, effect }) => {
      const isStart = kind === 'step-started' && (effect?.kind === 'turn' || effect?.kind === 'command');
      return isStart ? [`${effect.kind} ${step}#${attempt}`] : [];
    });
  });
}

interface StartDecision {
  readonly kind: string;
  readonly step: string;
  readonly attempt: number;
  readonly effect: { readonly kind: string } | null;
}

interface Sweep {
  readonly killed: boolean;
  readonly outcomes: readonly string[];
  readonly turns: readonly string[];
  /** Effects of turns and commands, each as often as the journal starts it. */
  readonly starts: readonly string[];
  readonly ran: readonly string[];
  readonly worktree: string;
  readonly events: readonly string[];
  readonly files: readonly string[];
}

async function sweep(killAt: string | null): Promise<Sweep> {
  await using made = await setup();
  const { rig } = made;
  const before = userTree(rig);
  const order = ['run', 'w.yaml', '--id', 'r'];
  const decision = approvedByPerson(rig, 'r', 'ask', '.agent/');
  const first = killAt === null ? await rig.meow(...order) : await rig.meowKilledAt(killAt, ...order);
  const killed = first.code === KILLED;
  if (killed) {
    const again = await rig.meow('resume', 'r');
    // Killed before its first record was complete, the run never began; killed at its last one, it is done.
    if (again.stderr.includes('never began')) expect((await rig.meow(...order)).code).toBe(0);
    else if (!again.stderr.includes('is done')) expect(again.code, again.stderr + again.stdout).toBe(0);
  } else {
    expect(first.code, first.stderr + first.stdout).toBe(0);
  }
  await decision;
  expect(userTree(rig)).toEqual(before);
  expect(await rig.left(), 'left running').toEqual([]);
  expect(JSON.parse(rig.read('.meow/run/r/status.json'))).toMatchObject({ status: 'done', visits: 8 });
  expect(rig.read('.meow/run/r/final-state.txt')).toMatch(/^status: done\n/);
  expect(rig.read('.meow/run/r/diff.patch')).toMatch(/\+two\n[\s\S]*\+new\n/);
  const { stdout } = await rig.shell(
    'cd .meow/worktrees/r && git status --porcelain && git log --format=%s && cat a.txt b.txt',
  );
  return {
    killed,
    outcomes: await made.outcomes(),
    turns: made.turns(),
    starts: starts(made),
    ran: rig.read('.meow/run/r/ran').split('\n'),
    worktree: stdout,
    events: events(rig).map(({ event_type: type, visit, outcome, next_step: next, role, path, decided_by: by }) =>
      [type, visit, outcome, next, role, path, by].filter((word) => word !== undefined).join(' '),
    ),
    files: rig.files('.meow/run/r').filter((path) => !path.endsWith('/')),
  };
}

let calm: Sweep;
beforeAll(async () => {
  calm = await sweep(null);
});

test('a run without crashes does each step once', () => {
  expect(calm).toMatchObject({
    killed: false,
    outcomes: [
      'build#1 completed',
      'validate#1 completed',
      'judge#1 needs_human',
      'ask#1 gate_approved',
      'note#1 completed',
      'spoil#1 completed',
      'undo#1 completed',
      'end#1 completed',
    ],
    turns: ['build#1.turn 1', 'spoil#1.turn 1'],
    starts: [
      'turn build#1.turn#1',
      'command build#1.witness#1',
      'command validate#1.person.run#1',
      'command validate#1.check.run#1',
      'command judge#1.ask#1',
      'turn spoil#1.turn#1',
    ],
    ran: ['witnessed', 'person', 'checked', 'judged', ''],
    worktree: ' M a.txt\n?? b.txt\n?? report.txt\nfirst\none\ntwo\nnew\n',
  });
  expect(calm.events.filter((event) => !event.startsWith('artifact_recorded'))).toEqual([
    'step_started build#1',
    'step_completed build#1 completed',
    'route_selected build#1 completed validate',
    'step_started validate#1',
    'step_completed validate#1 completed',
    'route_selected validate#1 completed judge',
    'step_started judge#1',
    'step_completed judge#1 needs_human',
    'route_selected judge#1 needs_human ask',
    'step_started ask#1',
    'gate_requested ask#1',
    'gate_approved ask#1 ann',
    'step_completed ask#1 gate_approved',
    'route_selected ask#1 gate_approved note',
    'step_started note#1',
    'gate_requested note#1',
    'step_completed note#1 completed',
    'route_selected note#1 completed spoil',
    'step_started spoil#1',
    'step_completed spoil#1 completed',
    'route_selected spoil#1 completed undo',
    'step_started undo#1',
    'rollback_completed undo#1',
    'step_completed undo#1 completed',
    'route_selected undo#1 completed end',
    'step_started end#1',
    'step_completed end#1 completed',
    'run_ended',
  ]);
  // Every artifact that is mentioned exists.
  const told = calm.events.flatMap((event) => / (artifacts\/\S+)/.exec(event)?.[1] ?? []);
  expect(told.length).toBeGreaterThan(15);
  for (const path of told) expect(calm.files).toContain(`.meow/run/r/${path}`);
});

test.each([
  ['torn', 0],
  ['durable', 2],
])('killed at every append (%s), a run does nothing twice', { timeout: SWEEP_MS }, async (moment, sample) => {
  await forEveryAppend(sample, async (append) => {
    const rough = await sweep(`${append}:${moment}`);
    if (rough.killed) expect(rough, `killed at append ${append}`).toEqual({ ...calm, killed: true });
    return rough.killed;
  });
});
