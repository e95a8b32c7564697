import { describe, expect, test } from 'vitest';

import { clientEnvironment, pasteFlags, tooOld } from './setting.ts';

describe('tmux', () => {
  test.each(['tmux 3.1c', 'tmux 3.0', 'tmux 2.9a', 'tmux next-3.1', 'tmux 1.8'])('%s is too old', (version) => {
    expect(tooOld(version)).toBe(true);
  });

  test.each(['tmux 3.2', 'tmux 3.3a', 'tmux 3.10', 'tmux 4.0', 'tmux next-3.7', 'tmux master', 'tmux openbsd-7.5', ''])(
    '%s is not known to be',
    (version) => {
      expect(tooOld(version)).toBe(false);
    },
  );

  test('that makes pastes harmless is told not to', () => {
    expect(pasteFlags(['paste-buffer (pasteb) [-dpr] [-s separator] [-b buffer-name] [-t target-pane]'])).toBe('-dpr');
    expect(pasteFlags(['paste-buffer (pasteb) [-dprS] [-s separator] [-b buffer-name] [-t target-pane]'])).toBe(
      '-dprS',
    );
  });
});

describe('what tmux is started with', () => {
  const environment = { PATH: '/bin', LC_ALL: 'C.UTF-8', TMUX: '/tmp/a,1,2', SECRET: 'x', MEOW_RUN: 'wf-1.m:a#1' };

  test('is little for a private server', () => {
    expect(clientEnvironment(environment, true)).toEqual({ PATH: '/bin', LC_ALL: 'C.UTF-8' });
  });

  test("is the user's environment for the user's own, without our marker", () => {
    const { MEOW_RUN: _, ...without } = environment;
    expect(clientEnvironment(environment, false)).toEqual(without);
  });
});
