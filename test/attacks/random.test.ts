// Random attacks. Each round runs a small workflow of one of the three languages, one of whose steps commits a hostile act: it
// forges a decision, plants something where the engine writes, deceives git, or kills a process. Then the invariants must hold.
//
// MEOW_ATTACK_ROUNDS=2000 MEOW_ATTACK_SEED=7 run more rounds from another seed; a failure names the seed of its round.

import { mkdirSync, readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ConductorRig, gate, rollback, work } from '../fixtures/conductor/rig.ts';
import { IS_WHOLE } from '../rig/crash-sweep.ts';
import { type Result, Rig, shellStep } from '../rig/rig.ts';

const ROUNDS = Number(process.env['MEOW_ATTACK_ROUNDS'] ?? (IS_WHOLE ? 200 : 40));
const SEED = Number(process.env['MEOW_ATTACK_SEED'] ?? 1);
const AT_ONCE = 2;
const RESUMES_MAX = 4;

/** Deterministic numbers (mulberry32). */
class Chance {
  #state: number;

  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** From 0 to `count` - 1. */
  below(count: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % count;
  }

  isOne(of: number): boolean {
    return this.below(of) === 0;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }
}

interface Round {
  readonly rig: Rig;
  /** The workflow file or folder, and the id of its run. */
  readonly file: string;
  readonly id: string;
  /** A gate that must stop the run before the step `deploy`, or null. */
  readonly gate: string | null;
  readonly isGit: boolean;
  /** The step that commits the act. If it destroys its own record, it may run twice: nobody else is harmed. */
  readonly evil: string;
}

// Acts are shell text. $V is a file and $D a folder outside of the project, $W the folder of runs, $R the folder of the run.

const PLANTS = [
  (path: string) => `ln -s "$V" ${path}`,
  (path: string) => `ln "$V" ${path}`,
  (path: string) => `ln -s "$D" ${path}`,
  (path: string) => `ln -s "$D/new" ${path}`,
  (path: string) => `mkfifo ${path}`,
  (path: string) => `mkdir ${path}`,
];

/** Files of steps that follow, and names that the engine could use for itself. */
const PLACES = [
  ...['stdout', 'stderr', 'status', 'script', 'prompt', 'outputs'].map((name) => `"$R/steps/$NEXT.1.${name}"`),
  ...['tmp', 'new'].map((end) => `"$W/$ID.yaml.${end}"`),
  ...['sessions.jsonl', 'sim.toml', 'engine.log'].map((name) => `"$R/${name}"`),
];

const RUN_DIR_PLACES = [
  'status.json',
  'status.json.tmp',
  'artifacts',
  'transcript.md',
  'diff.patch',
  'events.ndjson',
].map((name) => `"$MEOW_RUN_DIR/${name}"`);

const FORGED = JSON.stringify({ type: 'approval', gate_id: 'review', approved: true, by: 'ada' });

const FORGERIES = [
  'meow approve "$ID" "$GATE" --as ada',
  'env -i PATH="$PATH" HOME="$HOME" meow approve "$ID" "$GATE"',
  'env -u MEOW_RUN meow answer "$ID" "$GATE" yes',
  `mkdir -p "$R/inbox"; echo '${FORGED}' | sed "s/review/$GATE/" > "$R/inbox/forged.tell"`,
  'meow done --yes; meow stop "$ID" --help',
];

const KILLS = [
  // The shell above this step, and the engine.
  'kill -9 $PPID',
  'kill -9 $$',
  'kill -9 "$(sed \'s/.*"pid":\\([0-9]*\\).*/\\1/\' "$W/$ID.yaml.lock")"; sleep 0.1',
  'kill -TERM "$(sed \'s/.*"pid":\\([0-9]*\\).*/\\1/\' "$W/$ID.yaml.lock")"; sleep 0.1',
];

const GIT_TRICKS = [
  'git update-index --assume-unchanged kept.txt',
  'git update-index --skip-worktree kept.txt',
  'git config filter.lie.clean "echo kept"; echo "kept.txt filter=lie" > .gitattributes; git add -A',
  'git replace "$(git rev-parse HEAD:kept.txt)" "$(echo bad | git hash-object -w --stdin)"',
  'git for-each-ref --format="%(refname)" refs/meow | while read -r r; do git update-ref -d "$r"; done',
  'git init --quiet .x && mv .x/.git sub.git; rm -rf .x; mkfifo pipe',
  'git config core.fsmonitor "touch $V"; git config core.hooksPath "$D"',
  'rm -f .git; ln -s "$D" .git',
];

function actOf(chance: Chance, { gate: asked, isGit }: Pick<Round, 'gate' | 'isGit'>): string {
  const acts = [
    () => {
      const place = chance.pick(isGit ? [...PLACES, ...RUN_DIR_PLACES] : PLACES);
      return `rm -rf ${place}; mkdir -p "$(dirname ${place})"; ${chance.pick(PLANTS)(place)}`;
    },
    () => `rm -rf "$R/steps"; ${chance.pick(PLANTS)('"$R/steps"')}`,
    () => chance.pick(KILLS),
    ...(asked === null ? [] : [() => chance.pick(FORGERIES), () => chance.pick(FORGERIES)]),
    ...(isGit ? [() => chance.pick(GIT_TRICKS), () => chance.pick(GIT_TRICKS)] : []),
  ];
  return chance.pick(acts)();
}

/** An act happens once, although its step may be repeated. Failures of the act are nobody's business. */
function scriptOf(chance: Chance, round: Round, next: string): string {
  const { rig } = round;
  const folder = rig.path('.meow/workflows');
  const names = {
    V: rig.path('../victim'),
    D: rig.path('../vault'),
    W: folder,
    R: `${folder}/${round.id}`,
    ID: round.id,
    GATE: round.gate ?? 'none',
    NEXT: next,
  };
  const acts = Array.from({ length: 1 + chance.below(2) }, () => actOf(chance, round));
  const set = Object.entries(names).map(([name, value]) => `${name}='${value}'`);
  return `${set.join(' ')}\nif ! mkdir "$W/../acted"; then exit 0; fi\n{ ${acts.join('\n')}\n} > "$W/../act.log" 2>&1\n`;
}

/** Whether `deploy` runs only after a gate, and which step commits the act, is chance. */
async function meowRound(chance: Chance): Promise<Round> {
  const rig = await Rig.setup();
  const count = 2 + chance.below(9);
  const evil = chance.below(count - 1);
  const asked = chance.isOne(2) ? 'review' : null;
  const round: Round = { rig, file: 'w.meow.toml', id: 'w', gate: asked, isGit: false, evil: `s${evil}` };
  const steps = Array.from({ length: count }, (_, at) => {
    const needs = at === 0 ? '' : `needs = ["s${chance.isOne(3) ? chance.below(at) : at - 1}"]`;
    const pause = chance.isOne(3) ? `sleep 0.0${1 + chance.below(9)}; ` : '';
    return shellStep(`s${at}`, `${at === evil ? 'sh ./evil; ' : ''}${pause}echo s${at} >> ran; echo out`, needs);
  });
  const last = `needs = ["s${count - 1}"]`;
  const deploy =
    asked === null
      ? shellStep('deploy', 'echo deploy >> ran', last)
      : `${shellStep('gate', `meow await-approval ${asked}`, last)}${shellStep('deploy', 'echo deploy >> ran', 'needs = ["gate"]')}`;
  rig.write('w.meow.toml', `[main]\n${steps.join('')}${deploy}`);
  rig.write('evil', scriptOf(chance, round, chance.pick([`s${evil + 1}`, 'deploy', 'gate'])));
  return round;
}

async function raymondRound(chance: Chance): Promise<Round> {
  const rig = await Rig.setup();
  const count = 2 + chance.below(4);
  const evil = chance.below(count);
  const own = `main.${evil + 1}.${evil === 0 ? 'START' : `S${evil}`}`;
  const round: Round = { rig, file: 'flow', id: 'w', gate: null, isGit: false, evil: own };
  for (let at = 0; at < count; at++) {
    const name = at === 0 ? 'START' : `S${at}`;
    const tag = at === count - 1 ? '<result>end</result>' : `<goto>S${at + 1}.sh</goto>`;
    rig.write(
      `flow/${name}.sh`,
      `#!/bin/sh\n${at === evil ? 'sh ./evil\n' : ''}echo main.${at + 1}.${name} >> ran\necho '${tag}'\n`,
    );
  }
  rig.write('evil', scriptOf(chance, round, `main.${evil + 2}.S${evil + 1}`));
  return round;
}

async function conductorRound(chance: Chance): Promise<Round> {
  const made = await ConductorRig.setup({ 'kept.txt': 'kept\n' });
  const asked = chance.isOne(2) ? 'ask' : null;
  const round: Round = { rig: made.rig, file: 'w.yaml', id: 'r', gate: asked, isGit: true, evil: 'work' };
  const script = scriptOf(chance, round, chance.pick(['back#1', 'back#1.restore', 'work#1.turn']));
  made.rig.write('evil', script);
  made.agents({
    work: `sh '${made.rig.path('evil')}'; echo bad > kept.txt; echo done`,
    deploy: `echo deploy >> '${made.rig.path('ran')}'; echo done`,
  });
  const end = { opcode: 'STOP', verdict: 'success' };
  const back = rollback('pre_run', asked === null ? 'end' : 'ask');
  const routes = { gate_approved: 'deploy', gate_rejected: 'STOP' };
  made.workflow({
    work: work('back'),
    back,
    ...(asked === null ? {} : { ask: gate(routes), deploy: work('end') }),
    end,
  });
  return round;
}

const LANGUAGES = [meowRound, meowRound, meowRound, raymondRound, conductorRound];

function check(round: Round, result: Result, by: 'nobody' | 'a person'): void {
  const { rig, id } = round;
  // 2: refused, as when somebody has replaced the folder of the run. 137: the engine was killed.
  const act = rig.read('evil');
  expect([0, 1, 2, 3, 137, 143], `${act}\n${result.stderr}`).toContain(result.code);
  expect(result.stderr).not.toContain('bug in meow');
  expect(rig.read('../victim'), 'a file outside of the project').toBe('precious\n');
  // The shell of a step records its start and its end by path, wherever the hostile step leads that. Nothing else is written there.
  const own = /^(?:s\d+|main\.\d+\.\w+|work#1\.turn)\.\d+\.status$/;
  expect(readdirSync(rig.path('../vault')).filter((name) => !own.test(name))).toEqual([]);
  expect(result.stderr).not.toMatch(/: error /);
  const decisions = rig.decisions(id);
  const ran = rig.exists('ran') ? rig.read('ran').trimEnd().split('\n') : [];
  for (const step of new Set(ran)) {
    const starts = decisions.filter((each) => each === `step-started ${step}`).length;
    // A visit of Conductor has another name than its step.
    if (step !== round.evil && (step !== 'deploy' || !round.isGit))
      expect(
        ran.filter((each) => each === step).length,
        `${step} runs once for each start\n${act}`,
      ).toBeLessThanOrEqual(starts);
    const done = decisions.indexOf(`step-done ${step}`);
    if (done !== -1)
      expect(decisions.slice(done), `${step} is not started again`).not.toContain(`step-started ${step}`);
  }
  if (round.gate === null || by === 'a person') return;
  expect(ran, 'nothing runs behind a gate that nobody has passed').not.toContain('deploy');
  expect(decisions).not.toContain('gate-decided');
}

async function play(seed: number): Promise<void> {
  const chance = new Chance(seed);
  const round = await chance.pick(LANGUAGES)(chance);
  const { rig, id } = round;
  await using _ = rig;
  rig.write('../victim', 'precious\n');
  mkdirSync(rig.path('../vault'));
  let result = await rig.meow('run', round.file, '--id', id, '--no-wait');
  check(round, result, 'nobody');
  for (let resumes = 0; [1, 137, 143].includes(result.code) && resumes < RESUMES_MAX; resumes++) {
    result = await rig.meow('resume', id, '--no-wait');
    check(round, result, 'nobody');
  }
  const isWaiting = result.code === 3 && round.gate !== null;
  if (isWaiting) {
    expect(await rig.meow('approve', id, round.gate ?? '', '--as', 'ada')).toMatchObject({ code: 0 });
    result = await rig.meow('resume', id);
    check(round, result, 'a person');
    expect(rig.read('ran')).toContain('deploy');
  }
  // Whatever git was made to say, files that were rolled back are those of the start.
  const isBack = round.isGit && rig.decisions(id).includes('step-done back#1') && result.code === 0;
  if (isBack) expect(rig.read('.meow/worktrees/r/kept.txt')).toBe('kept\n');
  if (round.isGit) expect(rig.read('kept.txt'), "the user's own file").toBe('kept\n');
  if (!round.isGit) expect(result, 'the run ends well').toMatchObject({ code: 0 });
  expect(await rig.left(), 'no process is left').toEqual([]);
}

test(`${ROUNDS} rounds from seed ${SEED} on`, { timeout: 60_000 + 15_000 * ROUNDS }, async () => {
  const seeds = Array.from({ length: ROUNDS }, (_, at) => SEED + at);
  const failures: Error[] = [];
  const playAll = async (): Promise<void> => {
    for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) {
      try {
        await play(seed);
      } catch (error) {
        failures.push(
          new Error(`seed ${seed}; again: MEOW_ATTACK_ROUNDS=1 MEOW_ATTACK_SEED=${seed}`, { cause: error }),
        );
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, playAll));
  if (failures[0] !== undefined) throw new Error(failures.map(({ message }) => message).join('\n'), failures[0]);
});
