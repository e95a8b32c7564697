// Power cuts: a run works on a file system in an image; everything is killed, and the image is copied as it is at that moment.
// The copy lacks what no program has synced: the file system commits by itself only every five minutes (`commit=300`). The run
// is resumed on the copy. A disk that loses or reorders writes that it has confirmed is not modelled.

import { spawnSync } from 'node:child_process';
import { copyFileSync, constants, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';

import { ConductorRig, rollback, validate, work } from '../fixtures/conductor/rig.ts';
import { SWEEP_MS } from '../rig/crash-sweep.ts';
import { IS_WHOLE } from '../rig/sample.ts';

function runs(command: string, ...args: readonly string[]): boolean {
  return spawnSync(command, args, { stdio: 'ignore' }).status === 0;
}

class Disk implements Disposable {
  readonly #folder = realpathSync(mkdtempSync(join(tmpdir(), 'meow-power-')));
  readonly path = join(this.#folder, 'disk');
  readonly #images = [join(this.#folder, 'image'), join(this.#folder, 'copy')] as const;

  /** Null if this machine cannot mount an image. */
  static mount(): Disk | null {
    const disk = new Disk();
    mkdirSync(disk.path);
    const [image] = disk.#images;
    const isMade = runs('truncate', '-s', '192M', image) && runs('mkfs.ext4', '-q', '-F', image) && disk.#mount(image);
    if (isMade) return disk;
    disk[Symbol.dispose]();
    return null;
  }

  #mount(image: string): boolean {
    return runs('mount', '-o', 'loop,commit=300', image, this.path);
  }

  /** Loses everything that was not synced. All processes must have been killed. */
  cut(): void {
    const [image, copy] = this.#images;
    copyFileSync(image, copy, constants.COPYFILE_FICLONE);
    if (!runs('umount', '-l', this.path) || !this.#mount(copy)) throw new Error('the copy cannot be mounted');
  }

  [Symbol.dispose](): void {
    runs('umount', '-l', this.path);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

async function setup(disk: Disk): Promise<ConductorRig> {
  const earlier = process.env['TMPDIR'];
  process.env['TMPDIR'] = disk.path;
  try {
    const made = await ConductorRig.setup({ 'a.txt': 'one\n' }, '[validators.check]\ncommand = "grep two a.txt"\n');
    made.agents({
      build: 'grep -q two a.txt || echo two >> a.txt; echo new > b.txt; echo built',
      spoil: 'echo three > a.txt; rm -f b.txt; echo spoilt',
    });
    made.workflow({
      build: work('check'),
      check: validate('spoil', ['check']),
      spoil: work('undo'),
      undo: rollback('pre_step', 'end'),
      end: { opcode: 'STOP', reason: 'all' },
    });
    runs('sync', '-f', disk.path);
    return made;
  } finally {
    if (earlier === undefined) delete process.env['TMPDIR'];
    else process.env['TMPDIR'] = earlier;
  }
}

const isPossible = ((): boolean => {
  using disk = Disk.mount();
  return disk !== null;
})();
if (!isPossible) console.log('power cuts are not tested: this machine cannot mount a disk image');

/** Every run has as many appends as this. */
const SURE = 12;
const appends = IS_WHOLE ? Array.from({ length: 40 }, (_, at) => 1 + at) : [1, 4, 8, 12];

test.skipIf(!isPossible).each(appends)(
  'a Conductor run is resumed after the power failed at append %i of its journal',
  async (append) => {
    using disk = Disk.mount();
    if (disk === null) throw new Error('the disk image cannot be mounted again');
    const made = await setup(disk);
    const { rig } = made;
    const order = ['run', 'w.yaml', '--id', 'r'];
    const first = await rig.meowKilledAt(`${append}:durable`, ...order);
    await rig.killAll();
    // The run is over before the last of a whole sweep.
    if (first.code === 0 && append > SURE) return;
    expect(first.code, first.stderr + first.stdout).toBe(137);
    disk.cut();
    const again = await rig.meow('resume', 'r');
    if (/never began|no run/.test(again.stderr)) expect((await rig.meow(...order)).code).toBe(0);
    else if (!again.stderr.includes('is done')) expect(again.code, again.stderr + again.stdout).toBe(0);
    expect((await made.outcomes()).slice(0, 4)).toEqual([
      'build#1 completed',
      'check#1 completed',
      'spoil#1 completed',
      'undo#1 completed',
    ]);
    const { stdout } = await rig.shell('cd .meow/worktrees/r && cat a.txt b.txt && git fsck 2>&1 | grep -v dangling');
    expect(stdout).toBe('one\ntwo\nnew\n');
    expect(JSON.parse(rig.read('.meow/run/r/metadata.json'))).toMatchObject({ run_id: 'r' });
  },
  SWEEP_MS,
);
