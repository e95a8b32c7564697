import { expect, test } from 'vitest';

import { ok, runKernel } from '../../test/kernel-rig/run-kernel.ts';
import type { Progress } from '../ir/effect.ts';
import type { Input } from '../kernel/input.ts';
import { Deliveries } from './deliveries.ts';

const progress = (told: Progress): Input => ({ kind: 'effect-progressed', effect: 'p#1', progress: told });
const dialog = { name: 'permission', text: 'Bash: rm -rf dist' };

test('a prompt is told with its delivery, what the agent asked, and its end, up to the record that is shown', () => {
  const { records } = runKernel(
    's spawn w1\np prompt w1 needs s',
    ok('s#1', { agent: 'w1' }),
    progress({ delivery: 'sending' }),
    progress({ delivery: 'accepted' }),
    progress({ dialog }),
    progress({ dialog: null }),
    ok('p#1'),
  );
  const deliveries = new Deliveries();
  for (const record of records) deliveries.note(record);
  const last = records.at(-1)?.seq ?? 0;
  const whole = deliveries.latest('w1', last);
  expect(whole).toMatchObject({ number: 1, step: 'p', attempt: 1, isOpen: false });
  expect(whole?.events.map(({ text }) => text)).toEqual([
    'journalled',
    'being delivered',
    'accepted',
    'asks you',
    'at work again',
    'done',
  ]);
  const asked = records.find(({ decisions }) => decisions.some(({ kind }) => kind === 'gate-asked'))?.seq ?? 0;
  expect(deliveries.latest('w1', asked)).toMatchObject({ isOpen: true });
  expect(deliveries.latest('w1', asked)?.events.at(-1)?.text).toBe('asks you');
  expect(deliveries.latest('w1', 1)).toBeNull();
  expect(deliveries.latest('other', last)).toBeNull();
});
