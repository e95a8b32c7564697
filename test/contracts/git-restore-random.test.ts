// After any changes by an agent, a restore brings back the previous state byte for byte, and touches nothing else.
//
// More or other seeds: MEOW_GIT_SEEDS=200 MEOW_GIT_FIRST=1000.

import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { attempts } from '../rig/sample.ts';
import { randomFrom } from '../../src/base/random.ts';
import { Agent, expected, see, type Sight } from './git-play.ts';
import { GitRig, picture, value } from './git-rig.ts';

const SEEDS = Number(process.env['MEOW_GIT_SEEDS'] ?? attempts(16));
const FIRST = Number(process.env['MEOW_GIT_FIRST'] ?? '1');
const TREE = 'trees/wf-1';

describe('whatever an agent does', () => {
  const seeds = Array.from({ length: SEEDS }, (_, n) => FIRST + n);
  test.each(seeds)('pre_step and pre_run restore the previous state (seed %i)', async (seed) => {
    await using rig = await GitRig.setup();
    const random = randomFrom(seed);
    const worktree = await rig.worktree();
    const agent = new Agent(rig, TREE, random);
    const user = rig.userPicture();

    const acts = [...agent.work(8), '| pre_run'];
    const preRun = see(rig, TREE);
    value(await worktree.snapshot('pre_run'));
    acts.push(...agent.work(6), '| pre_step');
    const preStep = see(rig, TREE);
    value(await worktree.snapshot('pre_step'));

    const restoreTo = async (name: string, id: string, then: Sight): Promise<boolean> => {
      acts.push(...agent.work(8), `| to ${name}`);
      const before = see(rig, TREE);
      const result = await worktree.restore(rig.restoreTo(name, id));
      const told = acts.join(', ');
      if (!result.ok && result.error.kind === 'opaque') {
        expect(picture(join(rig.base, TREE)), told).toEqual(before.files);
        return false;
      }
      value(result);
      const after = see(rig, TREE);
      expect(after.files, told).toEqual(expected(then, before));
      expect(after.git, told).toEqual(then.git);
      return true;
    };
    if (await restoreTo('pre_step', 'r1', preStep)) await restoreTo('pre_run', 'r2', preRun);
    expect(rig.userPicture()).toEqual(user);
  });
});
