import { expect, test } from 'vitest';
import { Rig, shellStep, timeless, waitingStep } from '../rig/rig.ts';
import { Terminal } from '../rig/terminal.ts';

const WORKFLOW = `[main]
cleanup_on_stop = "true"
${shellStep('quick', 'true')}
${shellStep('wrong', 'echo nothing works >&2; exit 3', 'on_error = "continue"')}
${waitingStep('hold', 'needs = ["quick"]')}
${shellStep('after', 'true', 'needs = ["hold", "wrong"]')}`;

test('the live tree is redrawn in place, and its last state stays on the screen', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', WORKFLOW);
  using terminal = new Terminal(rig, { columns: 90, rows: 20 });
  terminal.type('meow run w.meow.toml --id live');

  const running = await terminal.shows(/● hold/);
  expect(timeless(running)).toBe(`$ meow run w.meow.toml --id live
live w.meow.toml#main  running  T  1 running, 1 done, 1 failed, 1 pending
✓ quick  T
↷ wrong  T  the command exited with status 3 — nothing works  continued
● hold   T
· after`);
  expect(terminal.cursorIsShown()).toBe(false);
  expect(terminal.colours()).toContain('\u001B[32m');

  // The elapsed time advances by itself.
  await terminal.shows(/● hold +[1-9]\.\d+s/);
  terminal.resize(40, 10);
  await terminal.shows(/↷ wrong .*…$/m);
  terminal.resize(90, 20);
  await terminal.shows(/nothing works/);

  rig.write('hold.go', '');
  const last = await terminal.shows(/✓ after .*\n\$$/);
  // The text above the tree is in the history: tmux moves it there when it wraps the lines below.
  expect(timeless(last)).toBe(`live w.meow.toml#main  done  T  3 done, 1 failed (handled)
✓ quick  T
↷ wrong  T  the command exited with status 3 — nothing works  continued
✓ hold   T
✓ after  T
$`);
  expect(terminal.cursorIsShown()).toBe(true);
});

test('a terminal that becomes small and large again shows one tree, and what was above it', async () => {
  await using rig = await Rig.setup();
  const steps = Array.from({ length: 10 }, (_, index) => shellStep(`step-${index}`, 'true')).join('');
  rig.write('w.meow.toml', `[main]\n${steps}${waitingStep('hold')}`);
  using terminal = new Terminal(rig, { columns: 90, rows: 20 });
  terminal.type('meow run w.meow.toml --id live');
  const before = timeless(await terminal.shows(/✓ step-9 [^]*● hold/));
  for (const rows of [6, 20]) {
    terminal.resize(90, rows);
    const shown = await terminal.shows(
      rows === 6 ? /^live .*\n[^]*… .* more/ : /^(?![^]* more)[^]*✓ step-9 [^]*● hold/,
    );
    if (rows === 20) expect(timeless(shown)).toBe(before);
  }
  rig.write('hold.go', '');
  expect((await terminal.shows(/✓ hold .*\n\$$/)).match(/live w\.meow/g)).toHaveLength(1);
});

test('after several changes of the size in a row, nothing of an old tree is left above the new one', async () => {
  await using rig = await Rig.setup();
  const steps = Array.from({ length: 10 }, (_, index) => shellStep(`step-${index}-of-a-long-name`, 'true')).join('');
  rig.write('w.meow.toml', `[main]\n${steps}${waitingStep('hold')}`);
  using terminal = new Terminal(rig, { columns: 90, rows: 20 });
  terminal.type('meow run w.meow.toml --id live');
  await terminal.shows(/✓ step-9-[^]*● hold/);
  for (const [columns, rows] of [
    [90, 6],
    [25, 8],
    [60, 9],
    [90, 30],
  ] as const)
    terminal.resize(columns, rows);
  const screen = await terminal.shows(/^(?![^]* more)[^]*✓ step-9-[^]*● hold +[2-9]\.\d+s/);
  expect(screen.match(/live w\.meow/g)).toHaveLength(1);
  expect(screen.match(/✓ step-3-/g)).toHaveLength(1);
});

test('Ctrl-C in the live tree stops the run and restores the terminal', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', WORKFLOW);
  using terminal = new Terminal(rig, { columns: 90, rows: 20 });
  terminal.type('meow run w.meow.toml --id live; echo status $?');
  await terminal.shows(/● hold/);
  terminal.press('C-c');
  const screen = await terminal.shows(/status \d+\n\$$/);
  expect(screen).toMatch(/live w\.meow\.toml#main {2}stopped .*\n {2}stopped by Ctrl-C\n/);
  expect(screen).toMatch(/\nnext: .*meow resume live\nstatus 130\n\$$/);
  expect(terminal.cursorIsShown()).toBe(true);
});

test('a run that is suspended and continued draws below the text that was written meanwhile', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', WORKFLOW);
  using terminal = new Terminal(rig, { columns: 90, rows: 30 });
  terminal.type('set -m; clear');
  terminal.type('meow run w.meow.toml --id live');
  await terminal.shows(/● hold/);
  terminal.press('C-z');
  await terminal.shows(/Stopped[^]*\n\$$/);
  expect(terminal.cursorIsShown()).toBe(true);
  terminal.type('fg');
  await terminal.shows(/Stopped[^]*fg\n[^]*● hold/);
  rig.write('hold.go', '');
  const screen = await terminal.shows(/✓ after .*\n\$$/);
  expect(screen.match(/^live /gm)).toHaveLength(2);
});

test('with more steps than rows, running steps stay visible, and nothing scrolls', async () => {
  await using rig = await Rig.setup();
  const many = Array.from({ length: 40 }, (_, index) => shellStep(`s${index}`, 'true')).join('');
  const needs = Array.from({ length: 40 }, (_, index) => `"s${index}"`).join(', ');
  rig.write('w.meow.toml', `[main]\n${many}${waitingStep('hold', `needs = [${needs}]`)}`);
  using terminal = new Terminal(rig, { columns: 80, rows: 12 });
  terminal.type('clear; meow run w.meow.toml --id many');
  const screen = await terminal.shows(/● hold/);
  expect(screen.split('\n')[0]).toMatch(/^many w\.meow\.toml#main {2}running/);
  expect(screen.split('\n').length).toBeLessThanOrEqual(11);
  rig.write('hold.go', '');
  await terminal.shows(/✓ hold .*\n\$$/);
});

test('status --watch follows a run of another terminal', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', WORKFLOW);
  const run = rig.start('run', 'w.meow.toml', '--id', 'seen');
  await rig.appears('hold.began');
  using terminal = new Terminal(rig, { columns: 90, rows: 20 });
  terminal.type('meow status seen --watch');
  await terminal.shows(/● hold/);
  rig.write('hold.go', '');
  expect((await run.ended).code).toBe(0);
  await terminal.shows(/✓ hold[^]*✓ after .*\n\$$/);
});

test('a terminal without a known size is treated as 80 × 24', async () => {
  await using rig = await Rig.setup();
  rig.write('w.meow.toml', WORKFLOW);
  using terminal = new Terminal(rig, { columns: 90, rows: 20 });
  terminal.type('stty cols 0 rows 0; clear; meow run w.meow.toml --id live');
  await terminal.shows(/live w\.meow\.toml#main {2}running .*\n✓ quick .*\n↷ wrong .*\n● hold/);
  rig.write('hold.go', '');
  await terminal.shows(/live w\.meow\.toml#main {2}done .*\n✓ quick .*\n↷ wrong .*\n✓ hold .*\n✓ after .*\n/);
  terminal.type('clear; meow list; meow status');
  await terminal.shows(/live +done .*w\.meow\.toml#main\n[^]*✓ hold /);
});
