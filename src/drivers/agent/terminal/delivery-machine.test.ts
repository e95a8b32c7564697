// delivery/1 to delivery/8 for every order of observations, and the common cases.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type {
  Act,
  DeliveryOutcome,
  DeliveryPlan,
  DeliveryState,
  InheritedState,
  Observation,
} from './delivery-machine.ts';
import { beginDelivery, nextStep } from './delivery-machine.ts';
import { attempts } from '../../../../test/rig/sample.ts';

const PLAN: DeliveryPlan = {
  preKeys: [],
  preDelayMs: 0,
  postDelayMs: 100,
  postKeys: ['Enter'],
  clearKeys: ['C-u'],
  byHook: false,
  showsBusy: false,
  canQueue: false,
  wasPrepared: false,
  submitsLines: false,
  text: 'the text',
  shownText: 'the text',
  settleMs: 100,
  typingMs: 1_000,
  visibleMs: 1_500,
  reactMs: 3_000,
  confirmMs: 1_000,
  timeoutMs: 30_000,
};

const IDLE: Observation = {
  now: 0,
  isAlive: true,
  isGivenUp: false,
  isConfirmed: false,
  hasDialog: false,
  inMode: false,
  typedAt: null,
  isReady: true,
  isBusy: false,
  hasWorked: false,
  isQueued: false,
  isEmpty: true,
  draft: 'none',
  isBracketed: true,
  row: '>',
  blanks: 0,
  cursor: { row: 5, column: 2 },
  holds: 'untold',
  screen: 'idle',
};

/** Shows it one thing after the other, and performs all that it asks for. */
class Rehearsal {
  state: DeliveryState;
  readonly acts: string[] = [];
  outcome: DeliveryOutcome | null = null;
  readonly #plan: DeliveryPlan;
  #now = 0;

  constructor(plan: Partial<DeliveryPlan> = {}, from: InheritedState = 'nothing') {
    this.#plan = { ...PLAN, shownText: plan.text ?? PLAN.text, ...plan };
    this.state = beginDelivery(from, 0);
  }

  /** For as long as it waits: `ms` at most. */
  sees(observation: Partial<Observation>, ms = 0, performs = true): this {
    this.#now += 1;
    const until = this.#now + ms;
    for (;;) {
      const { act, state, done } = nextStep(this.#plan, this.state, { ...IDLE, ...observation, now: this.#now });
      this.state = performs ? done : state;
      if (act.kind === 'finish') this.outcome = act.outcome;
      else if (act.kind !== 'wait') this.acts.push(named(act));
      if (act.kind !== 'wait') return this;
      if (this.#now >= until) return this;
      this.#now = Math.min(until, this.#now + Math.max(1, act.ms));
    }
  }

  get delivery(): string | null {
    if (this.outcome === null) return null;
    return this.outcome.kind === 'failed' ? this.outcome.delivery : this.outcome.kind;
  }
}

function named(act: Act): string {
  return act.kind === 'press' ? act.what : act.kind;
}

/** An empty input with so many keys of the probe. */
const probed = (keys: number): Partial<Observation> => ({ holds: 'no', cursor: { row: 5, column: 2 + keys } });

const HELD: Partial<Observation> = { holds: 'yes', draft: 'some', row: '> text', screen: 'held' };

describe('a delivery', () => {
  test('is pasted, seen, submitted and confirmed by the hook', () => {
    const rehearsal = new Rehearsal({ byHook: true }).sees({}).sees(HELD, 100).sees({ isConfirmed: true });
    expect(rehearsal).toMatchObject({ acts: ['put', 'submit'], delivery: 'accepted' });
  });

  test('is confirmed by nothing but the hook, where there is one', () => {
    const rehearsal = new Rehearsal({ byHook: true, showsBusy: true }).sees({}).sees(HELD, 100);
    rehearsal.sees({ isBusy: true, holds: 'no', screen: 'at work' }, 40_000);
    expect(rehearsal).toMatchObject({ acts: ['put', 'submit'], delivery: 'draft-stuck' });
  });

  test('is confirmed by work that begins when the text has gone', () => {
    const rehearsal = new Rehearsal({ showsBusy: true }).sees({}).sees(HELD, 100);
    expect(rehearsal.sees({ holds: 'no', screen: 'gone' }, 500).delivery).toBeNull();
    expect(rehearsal.sees({ isBusy: true, holds: 'no' }).delivery).toBe('accepted');
    const blink = new Rehearsal({ showsBusy: true }).sees({}).sees(HELD, 100).sees({ hasWorked: true, holds: 'no' });
    expect(blink.delivery).toBe('accepted');
  });

  test('to a program that shows no work is confirmed when the text has gone, and the screen has gone on', () => {
    expect(new Rehearsal().sees({}).sees(HELD, 100).sees({ screen: 'next' }, 200).delivery).toBe('accepted');
  });

  test('whose text has only vanished is not accepted, and is not given up before its time', () => {
    const rehearsal = new Rehearsal().sees({}).sees(HELD, 100).sees({ holds: 'no' }, 29_000);
    expect(rehearsal.delivery).toBeNull();
    expect(rehearsal.sees({ holds: 'no' }, 2_000).delivery).toBe('draft-stuck');
  });

  test('whose text the terminal has only echoed is not accepted; an answer accepts it', () => {
    const echoed = { row: '', screen: 'idle\nthe text\n' };
    const rehearsal = new Rehearsal().sees({ row: '' }).sees({ ...HELD, row: 'the text' }, 100);
    expect(rehearsal.sees(echoed, 25_000).delivery).toBeNull();
    expect(rehearsal.sees({ ...echoed, screen: 'idle\nthe text\nheard' }, 200).delivery).toBe('accepted');
  });

  test('to a program that starts to read its input afterwards counts only what is seen from then on', () => {
    const rehearsal = new Rehearsal().sees({ row: '', isBracketed: false }).sees({ ...HELD, isBracketed: false }, 100);
    expect(rehearsal.acts).toEqual(['put', 'submit']);
    expect(rehearsal.sees({ screen: 'welcome' }, 20_000).delivery).toBeNull();
    rehearsal.sees(HELD, 1_000).sees({ screen: 'welcome, at work' }, 200);
    expect(rehearsal).toMatchObject({ acts: ['put', 'submit', 'submit'], delivery: 'accepted' });
  });

  test('whose text is just being drawn anew is not accepted', () => {
    const rehearsal = new Rehearsal().sees({}).sees(HELD, 100);
    rehearsal.sees({ screen: 'flicker' }, 80).sees(HELD, 50).sees({ screen: 'flicker' }, 80);
    expect(rehearsal.delivery).toBeNull();
  });

  test('to a program that echoes nothing is submitted only if a hook or a pattern can confirm it', () => {
    const silent = { row: '' };
    const unknown = new Rehearsal().sees(silent).sees({ ...silent, screen: 'a notice' }, 31_000);
    expect(unknown).toMatchObject({ acts: ['put'], outcome: { delivery: 'draft-stuck', reason: /never appeared/ } });
    const busy = new Rehearsal({ showsBusy: true }).sees(silent).sees(silent, 1_000);
    expect(busy.sees({ ...silent, screen: 'a notice' }, 25_000)).toMatchObject({ acts: ['put', 'submit'] });
    expect(busy.delivery).toBeNull();
    expect(busy.sees({ ...silent, isBusy: true }).delivery).toBe('accepted');
  });

  test('whose text is shown away from the cursor is accepted when it has left its place there', () => {
    const box = (above: string, input: string): Partial<Observation> => ({
      row: '',
      screen: `${above}\n${input}\nhelp`,
    });
    const rehearsal = new Rehearsal({ text: 'the whole text' })
      .sees(box('old', '>'))
      .sees(box('old', '> the whole text'), 1_000);
    expect(rehearsal.acts).toEqual(['put', 'submit']);
    expect(rehearsal.sees(box('a notice', '> the whole text'), 20_000).delivery).toBeNull();
    expect(rehearsal.sees(box('a notice\n> the whole text\nfine', '>'), 200).delivery).toBe('accepted');
  });

  test('does not take another output in the row of the cursor for the text', () => {
    const rehearsal = new Rehearsal().sees({ row: 'loading' }).sees({ row: 'loading..', screen: 'loading..' }, 5_000);
    expect(rehearsal.acts).toEqual(['put']);
  });

  test('to a program with a prompt is submitted when it shows the text, however late', () => {
    const rehearsal = new Rehearsal().sees({}).sees({}, 25_000);
    expect(rehearsal.acts).toEqual(['put']);
    expect(rehearsal.sees(HELD).acts).toEqual(['put', 'submit']);
  });

  test('sees the text in a placeholder that was not there before', () => {
    const placeholder = { row: '> [3 lines]', screen: 'idle [3 lines]' };
    const rehearsal = new Rehearsal().sees({}).sees(placeholder, 100);
    expect(rehearsal.acts).toEqual(['put', 'submit']);
    rehearsal.sees(placeholder, 1_000);
    expect(rehearsal).toMatchObject({ acts: ['put', 'submit', 'submit'], delivery: null });
    expect(rehearsal.sees({ screen: 'at work' }, 200).delivery).toBe('accepted');
  });

  test('is submitted again if the text still stands there, less and less often', () => {
    const rehearsal = new Rehearsal({ byHook: true, clearKeys: [] }).sees({});
    for (let times = 0; times < 40; times += 1) rehearsal.sees(HELD, 1_000);
    expect(rehearsal.acts).toEqual(['put', ...Array.from({ length: 5 }, () => 'submit')]);
    expect(rehearsal.delivery).toBe('draft-stuck');
  });

  test('is not submitted again if the text cannot be seen', () => {
    const rehearsal = new Rehearsal({ byHook: true }).sees({ row: '' }).sees({ row: '' }, 1_000);
    expect(rehearsal.sees({ row: '' }, 29_000).acts).toEqual(['put', 'submit']);
  });

  test('is put in again only if keys that were pressed after it are shown alone', () => {
    const rehearsal = new Rehearsal().sees({}).sees({ holds: 'no' }, 1_000).sees({ holds: 'no' }, 1_500);
    expect(rehearsal.acts).toEqual(['put', 'probe']);
    rehearsal.sees(probed(1), 1_500);
    expect(rehearsal.acts).toEqual(['put', 'probe', 'probe']);
    rehearsal.sees(probed(2)).sees({});
    expect(rehearsal.acts).toEqual(['put', 'probe', 'probe', 'clear', 'put']);
    rehearsal.sees({ holds: 'no' }, 1_000).sees(HELD, 100);
    expect(rehearsal.acts).toEqual(['put', 'probe', 'probe', 'clear', 'put', 'probe', 'submit']);
  });

  test('is not put in again if it follows the first key, or all keys are shown at once', () => {
    const rehearsal = new Rehearsal().sees({}).sees({ holds: 'no' }, 1_000).sees(probed(1), 500).sees(HELD, 100);
    expect(rehearsal.acts).toEqual(['put', 'probe', 'submit']);
    const stopped = new Rehearsal().sees({}).sees({ holds: 'no' }, 1_000).sees({ holds: 'no' }, 2_000);
    stopped.sees(probed(2), 500).sees(HELD, 100);
    expect(stopped.acts).toEqual(['put', 'probe', 'probe', 'submit']);
  });

  test('is submitted without the keys that were pressed to see whether it arrives', () => {
    const late = new Rehearsal()
      .sees({})
      .sees({ holds: 'no' }, 1_000)
      .sees({ ...HELD, blanks: 1 }, 100);
    expect(late.acts).toEqual(['put', 'probe', 'erase']);
    expect(late.sees(HELD, 100).acts).toEqual(['put', 'probe', 'erase', 'submit']);
    const other = new Rehearsal()
      .sees({})
      .sees({ holds: 'no' }, 1_000)
      .sees({ ...HELD, blanks: 2 }, 100);
    expect(other.acts).toEqual(['put', 'probe', 'submit']);
  });

  test('of a long text is given more time to be shown before a key follows it', () => {
    const rehearsal = new Rehearsal({ text: 'x'.repeat(1_000_000) }).sees({}).sees({ holds: 'no' }, 15_000);
    expect(rehearsal.sees(HELD).acts).toEqual(['put', 'submit']);
  });

  test('is not put in again into an input that shows nothing', () => {
    const rehearsal = new Rehearsal().sees({});
    for (let times = 0; times < 20; times += 1) rehearsal.sees({ holds: 'no' }, 2_000);
    expect(rehearsal.acts.filter((act) => act === 'put')).toEqual(['put']);
    expect(rehearsal.delivery).toBe('draft-stuck');
  });

  test('that is given up takes back a text that was not submitted, line by line', () => {
    const rehearsal = new Rehearsal({ byHook: true, postDelayMs: 9_999 }).sees({}).sees(HELD, 100);
    rehearsal
      .sees({ ...HELD, isGivenUp: true })
      .sees({ ...HELD, row: '> te' }, 1)
      .sees({ holds: 'no' });
    expect(rehearsal).toMatchObject({ acts: ['put', 'clear', 'clear'], delivery: 'draft-stuck' });
  });

  test('that is given up before the text is shown waits a moment for it, and takes it back', () => {
    const rehearsal = new Rehearsal({ byHook: true }).sees({}).sees({ isGivenUp: true, holds: 'no' }, 50);
    expect(rehearsal.delivery).toBeNull();
    rehearsal.sees({ ...HELD, isGivenUp: true }).sees({ holds: 'no', isGivenUp: true });
    expect(rehearsal).toMatchObject({ acts: ['put', 'clear'], delivery: 'draft-stuck' });
  });

  test('is queued behind work that does not end', () => {
    const rehearsal = new Rehearsal({ canQueue: true }).sees({ isBusy: true }, 2_999);
    expect(rehearsal.acts).toEqual([]);
    rehearsal
      .sees({ isBusy: true }, 10)
      .sees({ ...HELD, isBusy: true }, 100)
      .sees({ isBusy: true, isQueued: true });
    expect(rehearsal).toMatchObject({ acts: ['put', 'submit'], delivery: 'queued' });
  });

  test('waits for the end of work that it cannot be queued behind', () => {
    expect(new Rehearsal().sees({ isBusy: true }, 30_000)).toMatchObject({ acts: [], delivery: 'not-ready' });
  });

  test('begins when the agent is ready', () => {
    expect(new Rehearsal().sees({ isReady: false }, 5_000).sees({}).acts).toEqual(['put']);
    expect(new Rehearsal().sees({ isReady: false }, 30_000)).toMatchObject({ acts: [], delivery: 'not-ready' });
  });

  test('leaves a mode that a person has left the terminal in', () => {
    expect(new Rehearsal().sees({ inMode: true }).sees({}).acts).toEqual(['leave-mode', 'put']);
  });

  test('presses what the adapter wants before, and waits as long as it wants', () => {
    const rehearsal = new Rehearsal({ preKeys: ['Escape'], preDelayMs: 100 }).sees({}).sees({}, 90);
    expect(rehearsal.acts).toEqual(['prepare']);
    expect(rehearsal.sees({}, 10).acts).toEqual(['prepare', 'put']);
  });

  test('presses nothing into an input that was prepared before, while it is seen idle and empty', () => {
    const plan: Partial<DeliveryPlan> = { preKeys: ['Escape'], preDelayMs: 100, wasPrepared: true, canQueue: true };
    expect(new Rehearsal(plan).sees({}).acts).toEqual(['put']);
    expect(new Rehearsal(plan).sees({ isEmpty: false }).sees({}, 100).acts).toEqual(['prepare', 'put']);
    expect(new Rehearsal(plan).sees({ isBusy: true }, 3_000).sees({}, 100).acts).toEqual(['prepare', 'put']);
  });

  test('puts nothing into a menu that the keys before it opened, and closes it once their effect was seen', () => {
    const plan = { preKeys: ['Escape'], preDelayMs: 100 };
    const menu: Partial<Observation> = { isEmpty: false, draft: 'perhaps', row: '* 1.', screen: 'menu' };
    const rehearsal = new Rehearsal(plan).sees({}).sees(menu, 1_490);
    expect(rehearsal.acts).toEqual(['prepare']);
    expect(rehearsal.sees(menu, 10).acts).toEqual(['prepare', 'prepare']);
    expect(rehearsal.sees(menu, 10_000).acts).toEqual(['prepare', 'prepare']);
    expect(rehearsal.sees({}).acts).toEqual(['prepare', 'prepare', 'put']);
    const stays = new Rehearsal(plan).sees({}).sees(menu, 1_500).sees(menu, 30_000);
    expect(stays).toMatchObject({ acts: ['prepare', 'prepare'], delivery: 'not-ready' });
  });

  test('to a dead agent is dead', () => {
    expect(new Rehearsal().sees({ isAlive: false }).delivery).toBe('dead');
  });
});

describe('a draft that was there before', () => {
  const DRAFT: Partial<Observation> = { draft: 'some', row: '> old' };

  test('of a person who types through meow is left alone for longer, and nothing is put in beside it', () => {
    const rehearsal = new Rehearsal({ typingMs: 1_000 }).sees({ ...DRAFT, typedAt: 0 }, 9_000);
    expect(rehearsal.acts).toEqual([]);
    expect(rehearsal.sees({ ...DRAFT, typedAt: 0 }, 2_500).acts).toEqual(['clear']);
    expect(new Rehearsal({ typingMs: 1_000 }).sees({ typedAt: 0 }, 900).acts).toEqual([]);
    expect(new Rehearsal({ typingMs: 1_000 }).sees({ typedAt: 0 }, 1_200).acts).toEqual(['put']);
  });

  test('is cleared, and then the text is put in', () => {
    expect(new Rehearsal().sees(DRAFT, 1_000).sees({}).acts).toEqual(['clear', 'put']);
  });

  test('is left alone while somebody types', () => {
    const rehearsal = new Rehearsal();
    for (const row of ['a', 'ab', 'abc', 'abcd']) rehearsal.sees({ draft: 'some', row }, 900);
    expect(rehearsal.acts).toEqual([]);
  });

  test('of many lines is cleared as fast as it shrinks', () => {
    const rehearsal = new Rehearsal().sees(DRAFT, 1_000);
    for (let line = 20; line > 0; line -= 1) rehearsal.sees({ draft: 'some', row: `line ${line}` }, 1);
    expect(rehearsal.sees({}).acts).toEqual([...Array.from({ length: 21 }, () => 'clear'), 'put']);
  });

  test('that cannot be cleared keeps the text out', () => {
    const rehearsal = new Rehearsal();
    for (let times = 0; times < 40; times += 1) rehearsal.sees(DRAFT, 1_600);
    expect(rehearsal).toMatchObject({ acts: ['clear', 'clear', 'clear', 'clear', 'clear'], delivery: 'draft-stuck' });
    expect(new Rehearsal({ clearKeys: [] }).sees(DRAFT, 31_000).delivery).toBe('draft-stuck');
  });

  test('that is none, for nothing clears it, is no hindrance', () => {
    const rehearsal = new Rehearsal().sees({ draft: 'perhaps' }, 1_000).sees({ draft: 'perhaps' }, 1_500);
    expect(rehearsal.acts).toEqual(['clear', 'put']);
  });
});

describe('a dialog', () => {
  test('stops the clock, however long it stands', () => {
    const rehearsal = new Rehearsal().sees({ hasDialog: true }, 500_000).sees({});
    expect(rehearsal).toMatchObject({ acts: ['put'], delivery: null });
  });

  test('between text and Enter keeps Enter back; then the text that stands there is submitted', () => {
    const rehearsal = new Rehearsal().sees({}).sees({ hasDialog: true }, 5_000).sees(HELD, 100);
    expect(rehearsal.acts).toEqual(['put', 'submit']);
  });

  test('that swallowed the text makes it be put in once more, where its input can be read', () => {
    const rehearsal = new Rehearsal().sees({}).sees({ hasDialog: true }, 5_000).sees({ holds: 'no' }, 1_000);
    rehearsal.sees(probed(1), 2_000).sees(probed(2)).sees({});
    expect(rehearsal.acts).toEqual(['put', 'probe', 'probe', 'clear', 'put']);
  });

  test('is where it ends, if it is given up meanwhile', () => {
    expect(new Rehearsal().sees({ hasDialog: true, isGivenUp: true }).delivery).toBe('blocked-on-dialog');
  });
});

describe('in a later life', () => {
  test('a text that stands in the input is submitted', () => {
    for (const from of ['put', 'submitted'] as const) {
      expect(new Rehearsal({}, from).sees(HELD, 1_000).acts).toEqual(['submit']);
    }
  });

  test('a text that never came is put in, where its input can be read', () => {
    const rehearsal = new Rehearsal({}, 'put').sees({ holds: 'no' }, 1_000);
    rehearsal.sees(probed(1), 2_000).sees(probed(2)).sees({});
    expect(rehearsal.acts).toEqual(['probe', 'probe', 'clear', 'put']);
  });

  test('a text that never came is put in, even if an input of blanks does not look ready', () => {
    const rehearsal = new Rehearsal({}, 'put').sees({ holds: 'no' }, 1_000);
    rehearsal.sees({ ...probed(1), isReady: false }, 2_000).sees({ ...probed(2), isReady: false });
    expect(rehearsal.sees({}).acts).toEqual(['probe', 'probe', 'clear', 'put']);
  });

  test('what cannot be told is taken for done, and nothing is put in', () => {
    for (const from of ['put', 'submitted'] as const) {
      const rehearsal = new Rehearsal({}, from).sees({}, 5_000);
      expect(rehearsal).toMatchObject({ acts: [], delivery: 'assumed-delivered' });
    }
    const gone = new Rehearsal({}, 'submitted').sees({ holds: 'no' }, 31_000);
    expect(gone).toMatchObject({ acts: [], delivery: 'assumed-delivered' });
  });

  test('an agent at work has what was submitted', () => {
    expect(new Rehearsal({}, 'submitted').sees({ isBusy: true }).delivery).toBe('accepted');
  });
});

const plans: fc.Arbitrary<DeliveryPlan> = fc.record({
  preKeys: fc.constantFrom([], ['Escape']),
  preDelayMs: fc.constantFrom(0, 100),
  postDelayMs: fc.constantFrom(0, 300),
  postKeys: fc.constant(['Enter']),
  clearKeys: fc.constantFrom([], ['C-u']),
  byHook: fc.boolean(),
  showsBusy: fc.boolean(),
  canQueue: fc.boolean(),
  wasPrepared: fc.boolean(),
  submitsLines: fc.boolean(),
  text: fc.constant('one'),
  shownText: fc.constant('one'),
  settleMs: fc.constant(100),
  typingMs: fc.constant(1_000),
  visibleMs: fc.constantFrom(100, 1_500),
  reactMs: fc.constant(3_000),
  confirmMs: fc.constantFrom(100, 2_000),
  timeoutMs: fc.constant(20_000),
});

const sights: fc.Arbitrary<Omit<Observation, 'now'> & { readonly ms: number; readonly performed: boolean }> = fc.record(
  {
    ms: fc.constantFrom(1, 20, 200, 1_500),
    performed: fc.boolean(),
    isAlive: fc.constant(true),
    isGivenUp: fc.constant(false),
    isConfirmed: fc.constant(false),
    hasDialog: fc.boolean(),
    inMode: fc.boolean(),
    typedAt: fc.constant(null),
    isReady: fc.boolean(),
    isBusy: fc.boolean(),
    hasWorked: fc.boolean(),
    isQueued: fc.boolean(),
    isEmpty: fc.boolean(),
    draft: fc.constantFrom('some', 'perhaps', 'none'),
    isBracketed: fc.boolean(),
    row: fc.constantFrom('', '>', '> a', '> ab'),
    blanks: fc.nat(2),
    cursor: fc.record({ row: fc.constant(1), column: fc.nat(3) }),
    holds: fc.constantFrom('yes', 'no', 'untold'),
    screen: fc.constantFrom('one', 'two'),
  },
);

describe('whatever is seen', () => {
  test('nothing is put in at a dialog; text goes in anew only unsubmitted; Enter only what is seen, and so often', () => {
    fc.assert(
      fc.property(
        plans,
        fc.constantFrom<InheritedState>('nothing', 'put', 'submitted'),
        fc.array(sights),
        (plan, from, seen) => {
          let state = beginDelivery(from, 0);
          let now = 0;
          const submitted = { times: from === 'submitted' ? 1 : 0 };
          let puts = 0;
          for (const { ms, performed, ...observation } of seen) {
            now += ms;
            const step = nextStep(plan, state, { ...observation, now });
            state = performed ? step.done : step.state;
            const { act } = step;
            if (act.kind === 'finish') return;
            if (act.kind === 'press' || act.kind === 'put' || act.kind === 'leave-mode')
              expect(observation.hasDialog).toBe(false);
            if (act.kind === 'put' && performed) {
              puts += 1;
              expect(submitted.times).toBe(0);
              expect(observation.isReady && (plan.clearKeys.length === 0 || observation.draft !== 'some')).toBe(true);
            }
            if (act.kind === 'press' && act.what === 'submit') {
              expect(puts > 0 || from !== 'nothing').toBe(true);
              if (submitted.times > 0) expect(observation.holds).toBe('yes');
              if (performed) submitted.times += 1;
            }
          }
          expect(puts).toBeLessThanOrEqual(2);
          expect(submitted.times).toBeLessThanOrEqual(6);
        },
      ),
      { numRuns: attempts(2_000) },
    );
  });

  test('it comes to an end, once no dialog is in its way', () => {
    fc.assert(
      fc.property(plans, fc.array(sights), sights, (plan, seen, last) => {
        let state = beginDelivery('nothing', 0);
        let now = 0;
        for (const { ms, performed, ...observation } of [
          ...seen,
          ...Array.from({ length: 100 }, () => ({ ...last, ms: 1_000 })),
        ]) {
          now += ms;
          const step = nextStep(plan, state, { ...observation, hasDialog: false, inMode: false, now });
          state = performed ? step.done : step.state;
          if (step.act.kind === 'finish') return;
          // An act that never comes to pass is no end of it either: time is.
        }
        expect.unreachable();
      }),
    );
  });

  test('it is accepted for a reason: the hook; or it was shown, submitted, has left its input, and something goes on', () => {
    fc.assert(
      fc.property(plans, fc.array(sights), (plan, seen) => {
        let state = beginDelivery('nothing', 0);
        let now = 0;
        let [hasSubmitted, wasShown] = [false, false];
        for (const { ms, performed, ...observation } of seen) {
          now += ms;
          const step = nextStep(plan, state, { ...observation, now });
          if (observation.holds === 'yes') wasShown = true;
          state = performed ? step.done : step.state;
          if (step.act.kind === 'press' && step.act.what === 'submit' && performed) hasSubmitted = true;
          if (step.act.kind !== 'finish') continue;
          if (step.act.outcome.kind === 'accepted') {
            expect(hasSubmitted && !plan.byHook && observation.holds !== 'yes').toBe(true);
            expect(wasShown || plan.showsBusy).toBe(true);
          }
          return;
        }
      }),
      { numRuns: attempts(2_000) },
    );
  });
});
