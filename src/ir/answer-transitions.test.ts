import { describe, expect, test } from 'vitest';
import type { Transition } from './transition.ts';
import { type AllowedTransition, type Machine, plainPath, type TransitionPolicy } from './machine.ts';
import { checkTransitionPolicies } from './check.ts';
import { type AnswerTransitions, type LaneContext, laneContextOf, readTransitions } from './answer-transitions.ts';
import type { TransitionTag } from './tags.ts';
import { writtenText } from './text.ts';

const MACHINE: Machine = {
  states: { 'START.md': 'START', 'REVIEW.md': 'REVIEW', 'WORKER.md': 'WORKER', 'CHECK.sh': 'CHECK', 'CHECK.md': 'C2' },
  spellings: { START: ['START.md'], REVIEW: ['REVIEW.md'], WORKER: ['WORKER.md'], CHECK: ['CHECK.sh', 'CHECK.md'] },
  workflows: { '../research': 'research-START', 'lib/deploy.meow.toml': 'deploy#main' },
  adapters: { C2: 'other' },
  keepsCallers: false,
  asks: { open: 'ask', timed: 'ask:timed', routed: 'ask:routed' },
};
const HERE: LaneContext = { cwd: '', adapter: 'sim', depth: 0 };
const ANYTHING: TransitionPolicy = { machine: 'main', speaker: 'agent', allowed: null, forced: false };

function allow(tag: TransitionTag, parts: Partial<AllowedTransition> = {}): AllowedTransition {
  const nothing = { target: null, return: null, next: null, payload: null, input: null };
  return { ...nothing, timeout: null, timeoutNext: null, ...parts, tag };
}

function policy(...allowed: readonly AllowedTransition[]): TransitionPolicy {
  return { ...ANYTHING, allowed };
}

/** In a line: `goto REVIEW (resume) input=x`. */
function written(follow: Transition): string {
  const handed = (target: Extract<Transition, { kind: 'goto' }>['target']): string =>
    Object.entries(target.variables)
      .map(([name, value]) => {
        if (value.kind === 'literal') return ` ${name}=${JSON.stringify(value.value)}`;
        return value.kind === 'text' ? ` ${name}=${writtenText(value.text)}` : ` ${name}=?`;
      })
      .join('');
  switch (follow.kind) {
    case 'goto':
      return `goto ${writtenText(follow.target.block)} (${follow.session}${follow.dropCallers ? ', drop' : ''})${handed(follow.target)}`;
    case 'call':
      return `call ${writtenText(follow.target.block)} (${follow.session})${handed(follow.target)} > ${writtenText(follow.returnTo.block)}${handed(follow.returnTo)}`;
    case 'fork':
      return `fork ${follow.name} ${writtenText(follow.target.block)}${handed(follow.target)}`;
    case 'return':
      return `return ${follow.value.kind === 'literal' ? JSON.stringify(follow.value.value) : '?'}`;
    case 'end':
    case 'expand':
    case 'fail':
    case 'reject':
    case 'stop':
      return follow.kind;
  }
}

function told(steered: AnswerTransitions): readonly string[] | string {
  return steered.kind === 'follows' ? steered.follows.map(written) : steered.message;
}

type Case = readonly [text: string, told: string | readonly string[]];

describe('without a policy', () => {
  test.each<Case>([
    // Where each tag leads, and in which session
    ['<goto>REVIEW.md</goto>', ['goto REVIEW (resume) @adapter="sim"']],
    ['<goto> REVIEW </goto>', ['goto REVIEW (resume) @adapter="sim"']],
    ['<goto input="3 issues">REVIEW</goto>', ['goto REVIEW (resume) @adapter="sim" input="3 issues"']],
    [
      '<goto model="small" effort="low">REVIEW</goto>',
      ['goto REVIEW (resume) @adapter="sim" @model="small" @effort="low"'],
    ],
    ['<reset>REVIEW.md</reset>', ['goto REVIEW (fresh, drop)']],
    ['<reset cd="a/b" adapter="other">REVIEW.md</reset>', ['goto REVIEW (fresh, drop) @cwd="a/b" @adapter="other"']],
    [
      '<call return="START.md">REVIEW.md</call>',
      ['call REVIEW (fork) @adapter="sim" > START @adapter="sim" input={{result}}'],
    ],
    [
      '<function return="START.md" model="small" cd="/x">REVIEW.md</function>',
      ['call REVIEW (fresh) @cwd="/x" @model="small" > START @adapter="sim" input={{result}}'],
    ],
    [
      '<fork next="START.md" item="a" cd="w1" input="b">WORKER.md</fork>',
      ['fork worker WORKER item="a" @cwd="w1" input="b"', 'goto START (resume) @adapter="sim"'],
    ],
    ['<result>\nall\n\ngood\n</result>', ['return "all\\n\\ngood"']],
    ['<result>\r\nall\r\n</result>', ['return "all"']],
    ['<result></result>', ['return ""']],
    ['<reset-workflow>../research</reset-workflow>', ['goto research-START (fresh, drop)']],
    [
      '<call-workflow return="START" input="x">./../research/</call-workflow>',
      ['call research-START (fork) @adapter="sim" @depth=1 input="x" > START @adapter="sim" input={{result}}'],
    ],
    [
      '<function-workflow return="START">lib\\deploy.meow.toml</function-workflow>',
      ['call deploy#main (fresh) @depth=1 > START @adapter="sim" input={{result}}'],
    ],
    [
      '<fork-workflow next="START" item="a">../research</fork-workflow>',
      ['fork resear research-START item="a" @depth=1', 'goto START (resume) @adapter="sim"'],
    ],
    ['<ask next="REVIEW">\nWhich?\n</ask>', ['goto ask (resume) @adapter="sim" @question="Which?" @next="REVIEW"']],
    [
      '<ask next="REVIEW" timeout="1h">Which?</ask>',
      ['goto ask:timed (resume) @adapter="sim" @question="Which?" @next="REVIEW" @timeout="1h"'],
    ],
    [
      '<ask next="REVIEW" timeout="1h" timeout_next="START">Which?</ask>',
      ['goto ask:routed (resume) @adapter="sim" @question="Which?" @next="REVIEW" @timeout="1h" @timeout_next="START"'],
    ],

    // Several at once
    [
      '<fork next="START" n="1">WORKER</fork> <fork next="START.md" n="2">WORKER</fork>',
      ['fork worker WORKER n="1"', 'fork worker WORKER n="2"', 'goto START (resume) @adapter="sim"'],
    ],
    [
      '<fork n="1">WORKER</fork><fork-workflow>../research</fork-workflow><goto input="x">START</goto>',
      [
        'fork worker WORKER n="1"',
        'fork resear research-START @depth=1',
        'goto START (resume) @adapter="sim" input="x"',
      ],
    ],
    [
      '<fork next="START" n="1">WORKER</fork><goto>REVIEW</goto>',
      'the forks of the answer do not continue at the same state',
    ],
    [
      '<fork next="START">WORKER</fork><fork next="REVIEW">WORKER</fork>',
      'the forks of the answer do not continue at the same state',
    ],
    [
      '<fork next="START">WORKER</fork><fork>WORKER</fork>',
      '<fork> has no next="…", which names the state to continue at',
    ],
    [
      '<fork next="START">WORKER</fork><result>x</result>',
      'the answer has 2 transition tags (fork, result), but must have one',
    ],
    ['<goto>START</goto><goto>START</goto>', 'the answer has 2 transition tags (goto, goto), but must have one'],
    [
      '<goto>A</goto>'.repeat(9),
      'the answer has 9 transition tags (goto, goto, goto, goto, goto …), but must have one',
    ],

    // What cannot be followed
    ['nothing', 'the answer has no transition tag'],
    ['<goto>REVIEW.md', 'the answer has no transition tag; <goto> has no </goto>'],
    ['<goto></goto>', '<goto>: it does not name a state'],
    ['<goto>..</goto>', '<goto>: ".." is not a state'],
    [
      '<goto>../../etc/passwd</goto>',
      '<goto>: "../../etc/passwd" is a path; write the name of the state without its folder',
    ],
    [
      '<goto>C:\\START.md</goto>',
      '<goto>: "C:\\\\START.md" is a path; write the name of the state without its folder; did you mean START.md?',
    ],
    ['<goto>REVEIW.md</goto>', '<goto>: there is no state "REVEIW.md"; did you mean REVIEW.md?'],
    ['<goto>constructor</goto>', '<goto>: there is no state "constructor"'],
    ['<goto>CHECK</goto>', '<goto>: "CHECK" may mean CHECK.sh or CHECK.md; write the full name'],
    ['<call>REVIEW.md</call>', '<call> has no return="…", which names the state to continue at'],
    ['<call return="NOWHERE">REVIEW.md</call>', 'return of <call>: there is no state "NOWHERE"'],
    ['<fork>WORKER.md</fork>', '<fork> has no next="…", which names the state to continue at'],
    ['<goto a="1" a="2">REVIEW</goto>', '<goto> has the attribute a twice'],
    ['<goto cd="x">REVIEW</goto>', '<goto> continues its session, so it cannot change its folder with cd'],
    ['<reset cd=" ">REVIEW</reset>', 'cd of <reset> does not name a folder'],
    ['<goto>CHECK.md</goto>', '<goto> continues a session of sim, so it cannot use other; use <reset>'],
    ['<goto adapter="x">REVIEW</goto>', '<goto> continues a session of sim, so it cannot use x; use <reset>'],
    [
      '<function return="CHECK.md">REVIEW</function>',
      '<function> continues a session of sim, so it cannot use other; use <reset>',
    ],
    [
      '<call-workflow return="START">../../x</call-workflow>',
      '<call-workflow>: "../../x" is not a workflow that this one refers to',
    ],
    ['<ask next="START"> </ask>', '<ask> has no question'],
    ['<ask>Which?</ask>', '<ask> has no next="…", which names the state to continue at'],
    ['<ask next="START" timeout="soon">Which?</ask>', '"soon" is not a duration for <ask> (write 30m, 24h, 7d)'],
    ['<ask next="START" timeout_next="REVIEW">Which?</ask>', '<ask> has timeout_next but no timeout'],
  ])('%s', (text, expected) => {
    expect(told(readTransitions(ANYTHING, MACHINE, HERE, text))).toEqual(expected);
  });

  test('a reset keeps pending returns if the workflow says so', () => {
    const steered = readTransitions(ANYTHING, { ...MACHINE, keepsCallers: true }, HERE, '<reset>START</reset>');
    expect(told(steered)).toEqual(['goto START (fresh)']);
  });

  test('printed texts come with the transitions', () => {
    const steered = readTransitions(
      ANYTHING,
      MACHINE,
      HERE,
      '<print>\nhalf\n</print><goto>START</goto><print>done</print>',
    );
    expect(steered).toMatchObject({ kind: 'follows', printed: ['half', 'done'] });
  });

  test('the result of a script is kept byte for byte', () => {
    const script: TransitionPolicy = { ...ANYTHING, speaker: 'script' };
    expect(told(readTransitions(script, MACHINE, HERE, '<result>\nx\n</result>'))).toEqual(['return "\\nx\\n"']);
    expect(told(readTransitions(script, MACHINE, HERE, 'x'))).toBe('the output has no transition tag');
  });
});

describe('values that a lane keeps', () => {
  const there: LaneContext = { cwd: 'a/b', adapter: 'sim', depth: 2 };

  test.each<Case>([
    ['<goto>START</goto>', ['goto START (resume) @cwd="a/b" @adapter="sim" @depth=2']],
    ['<reset>START</reset>', ['goto START (fresh, drop) @cwd="a/b" @depth=2']],
    ['<reset cd="../c">START</reset>', ['goto START (fresh, drop) @cwd="a/c" @depth=2']],
    ['<reset cd="/c/./d/">START</reset>', ['goto START (fresh, drop) @cwd="/c/d" @depth=2']],
    ['<reset cd="../..">START</reset>', ['goto START (fresh, drop) @depth=2']],
    [
      '<function return="START" cd="c">REVIEW</function>',
      ['call REVIEW (fresh) @cwd="a/b/c" @depth=2 > START @cwd="a/b" @adapter="sim" @depth=2 input={{result}}'],
    ],
    [
      '<fork next="START" cd="c">WORKER</fork>',
      ['fork worker WORKER @cwd="a/b/c" @depth=2', 'goto START (resume) @cwd="a/b" @adapter="sim" @depth=2'],
    ],
  ])('%s', (text, expected) => {
    expect(told(readTransitions(ANYTHING, MACHINE, there, text))).toEqual(expected);
  });

  test('new folders are returned, so that they can be checked', () => {
    const steered = readTransitions(ANYTHING, MACHINE, there, '<fork next="START" cd="../../x">WORKER</fork>');
    expect(steered).toMatchObject({ kind: 'follows', folders: ['x'] });
  });

  test('workflows nest at most eight deep', () => {
    const text = '<call-workflow return="START">../research</call-workflow>';
    expect(told(readTransitions(ANYTHING, MACHINE, { ...HERE, depth: 7 }, text))).toHaveLength(1);
    expect(told(readTransitions(ANYTHING, MACHINE, { ...HERE, depth: 8 }, text))).toBe(
      '<call-workflow> would nest workflows more than 8 deep',
    );
  });

  test('after a script without a session, the next state chooses the adapter', () => {
    const script = {
      kind: 'command',
      script: '',
      cwd: null,
      env: {},
      captures: [],
      verdict: 'success',
      errors: [],
      steering: null,
    } as const;
    const variables = { '@cwd': 'x', '@adapter': 'sim', '@depth': 1 };
    expect(laneContextOf({ variables, session: { kind: 'fresh' }, spec: script })).toEqual({
      cwd: 'x',
      adapter: null,
      depth: 1,
    });
    expect(laneContextOf({ variables, session: { kind: 'resume', id: 's' }, spec: script }).adapter).toBe('sim');
    expect(laneContextOf({ variables: {}, session: { kind: 'fresh' }, spec: script })).toEqual({
      cwd: '',
      adapter: null,
      depth: 0,
    });
    const steered = readTransitions(ANYTHING, MACHINE, { ...HERE, adapter: null }, '<goto>CHECK.md</goto>');
    expect(told(steered)).toEqual(['goto C2 (resume)']);
    const asked = readTransitions(ANYTHING, MACHINE, { ...HERE, adapter: null }, '<ask next="CHECK.md">Which?</ask>');
    expect(told(asked)).toEqual(['goto ask (resume) @adapter="other" @question="Which?" @next="C2"']);
  });

  test.each([
    ['a/./b//c/', 'a/b/c'],
    ['a/../../b', '../b'],
    ['/a/../../b', '/b'],
    ['./', ''],
    ['a\\b', 'a/b'],
  ])('the path %s is %s', (path, plain) => {
    expect(plainPath(path)).toBe(plain);
  });
});

describe('with a policy', () => {
  const mixed = policy(
    allow('goto', { target: 'REVIEW.md' }),
    allow('call', { target: 'REVIEW.md', return: 'START.md' }),
    allow('fork', { target: 'WORKER.md', next: 'START.md' }),
    allow('result', { payload: 'YES' }),
  );

  test.each<Case>([
    ['<goto>REVIEW</goto>', ['goto REVIEW (resume) @adapter="sim"']],
    ['<goto>START</goto>', '<goto> is allowed here, but not as <goto>START</goto>'],
    ['<reset>REVIEW</reset>', '<reset> is not allowed here'],
    [
      '<call return="START">REVIEW</call>',
      ['call REVIEW (fork) @adapter="sim" > START @adapter="sim" input={{result}}'],
    ],
    ['<call return="REVIEW">REVIEW</call>', '<call> is allowed here, but not as <call return="REVIEW">REVIEW</call>'],
    ['<result> YES </result>', ['return " YES "']],
    ['<result>NO</result>', '<result> is allowed here, but not as <result>NO</result>'],
    [
      '<fork next="START">WORKER</fork><fork next="START">REVIEW</fork>',
      '<fork> is allowed here, but not as <fork next="START">REVIEW</fork>',
    ],
    ['<fork>WORKER</fork><goto>START</goto>', '<goto> is allowed here, but not as <goto>START</goto>'],
    ['nothing', 'the answer has no transition tag'],
    ['<print>x</print>', 'the answer has no transition tag'],
  ])('%s', (text, expected) => {
    expect(told(readTransitions(mixed, MACHINE, HERE, text))).toEqual(expected);
  });

  test.each<readonly [what: string, allowed: AllowedTransition, told: string | readonly string[]]>([
    ['goto', allow('goto', { target: 'REVIEW.md', input: 'x' }), ['goto REVIEW (resume) @adapter="sim" input=x']],
    ['reset', allow('reset', { target: 'REVIEW.md' }), ['goto REVIEW (fresh, drop)']],
    [
      'call',
      allow('call', { target: 'REVIEW.md', return: 'START.md' }),
      ['call REVIEW (fork) @adapter="sim" > START @adapter="sim" input={{result}}'],
    ],
    [
      'fork',
      allow('fork', { target: 'WORKER.md', next: 'START.md' }),
      ['fork worker WORKER', 'goto START (resume) @adapter="sim"'],
    ],
    ['result', allow('result', { payload: 'DONE' }), ['return "DONE"']],
    ['a call without its return', allow('call', { target: 'REVIEW.md' }), 'the answer has no transition tag'],
    ['a result with any payload', allow('result'), 'the answer has no transition tag'],
    ['a goto anywhere', allow('goto'), 'the answer has no transition tag'],
  ])('the only transition allowed need not be said: %s', (_what, allowed, expected) => {
    expect(told(readTransitions(policy(allowed), MACHINE, HERE, 'I am done.'))).toEqual(expected);
  });

  test('a written tag must satisfy the policy too', () => {
    const only = policy(allow('goto', { target: 'REVIEW.md' }));
    expect(told(readTransitions(only, MACHINE, HERE, '<goto>START</goto>'))).toBe(
      '<goto> is allowed here, but not as <goto>START</goto>',
    );
  });

  test('a forced transition is taken whatever the answer says', () => {
    const forced: TransitionPolicy = { ...policy(allow('goto', { target: 'REVIEW.md' })), forced: true };
    for (const text of [
      '',
      '<result>x</result>',
      '<goto>START</goto><goto>START</goto>',
      '<goto a="1" a="2">x</goto>',
    ]) {
      expect(told(readTransitions(forced, MACHINE, HERE, text))).toEqual(['goto REVIEW (resume) @adapter="sim"']);
    }
  });

  test('the input of the policy is the default', () => {
    const fixed = policy(allow('goto', { target: 'REVIEW.md', input: 'x' }), allow('result'));
    expect(told(readTransitions(fixed, MACHINE, HERE, '<goto>REVIEW</goto>'))).toEqual([
      'goto REVIEW (resume) @adapter="sim" input=x',
    ]);
    expect(told(readTransitions(fixed, MACHINE, HERE, '<goto input="y">REVIEW</goto>'))).toBe(
      '<goto> is allowed here, but not as <goto input="y">REVIEW</goto>',
    );
    const open = { parts: ['by ', { path: ['agent_id'], quote: [] }] };
    const filled = policy(allow('goto', { target: 'REVIEW.md', input: open }), allow('result'));
    expect(told(readTransitions(filled, MACHINE, HERE, '<goto>REVIEW</goto>'))).toEqual([
      'goto REVIEW (resume) @adapter="sim" input=by {{agent_id}}',
    ]);
    expect(told(readTransitions(filled, MACHINE, HERE, '<goto input="y">REVIEW</goto>'))).toEqual([
      'goto REVIEW (resume) @adapter="sim" input="y"',
    ]);
  });

  test('a question has the timeout of the policy', () => {
    const asked = policy(allow('ask', { next: 'START.md', timeout: '48h', timeoutNext: 'REVIEW.md' }));
    expect(told(readTransitions(asked, MACHINE, HERE, '<ask next="START">Which?</ask>'))).toEqual([
      'goto ask:routed (resume) @adapter="sim" @question="Which?" @next="START" @timeout="48h" @timeout_next="REVIEW"',
    ]);
    expect(told(readTransitions(asked, MACHINE, HERE, '<ask next="START" timeout="1h">Which?</ask>'))).toMatch(
      /^<ask> is allowed/,
    );
  });

  test('a question has the approvers of the policy, and an answer cannot let an agent decide', () => {
    const ask = (approver: string): string => `<ask next="START" approver="${approver}">Which?</ask>`;
    const read = (fixed: object, text: string) =>
      told(readTransitions(policy(allow('ask', fixed)), MACHINE, HERE, text));
    const listed = (names: string): readonly string[] => [
      `goto ask (resume) @adapter="sim" @question="Which?" @next="START" @approvers="${names}"`,
    ];
    const fixed = { approver: 'ada, agent:w' };
    expect(read(fixed, '<ask next="START">Which?</ask>')).toEqual(listed('ada\\nagent:w'));
    expect(read(fixed, ask('ada, agent:w'))).toEqual(listed('ada\\nagent:w'));
    expect(read(fixed, ask('ada'))).toMatch(/^<ask> is allowed here, but not as/);
    expect(read({}, ask('ada'))).toEqual(listed('ada'));
    expect(read({}, ask('ada, agent:w'))).toBe(
      '<ask> may name an agent as its approver only if allowed_transitions does',
    );
    expect(read({}, ask('ada, '))).toMatch(/does not name who decides <ask>/);
    expect(told(readTransitions(ANYTHING, MACHINE, HERE, ask('agent:w')))).toEqual(listed('agent:w'));
  });
});

describe('the reminder', () => {
  function reminder(steering: TransitionPolicy, machine: Machine, text: string): readonly string[] {
    const steered = readTransitions(steering, machine, HERE, text);
    return steered.kind === 'refused' ? steered.reminder.split('\n') : [];
  }

  test('lists the allowed tags as they must be written', () => {
    const steering = policy(
      allow('goto', { target: 'REVIEW.md' }),
      allow('goto', { target: 'START.md' }),
      allow('call', { target: 'REVIEW.md', return: 'START.md' }),
      allow('ask', { next: 'START.md', timeout: '48h', timeoutNext: 'REVIEW.md' }),
      allow('result', { payload: 'YES' }),
    );
    expect(reminder(steering, MACHINE, 'Done.')).toEqual([
      'Your last answer could not be followed: the answer has no transition tag.',
      '',
      'End your answer with exactly one of these tags, exactly as they are written here:',
      '',
      '<goto>REVIEW.md</goto>',
      '<goto>START.md</goto>',
      '<call return="START.md">REVIEW.md</call>',
      '<ask next="START.md" timeout="48h" timeout_next="REVIEW.md">…</ask>',
      '<result>YES</result>',
      '',
      '… is whatever you have to say.',
    ]);
  });

  test('explains the placeholders if the policy leaves something open', () => {
    const steering = policy(allow('fork', { target: 'WORKER.md' }), allow('call-workflow', { return: 'START.md' }));
    expect(reminder(steering, MACHINE, '<goto>X</goto>')).toEqual([
      'Your last answer could not be followed: <goto>: there is no state "X".',
      '',
      'End your answer with exactly one of these tags, exactly as they are written here:',
      '',
      '<fork next="STATE">WORKER.md</fork>',
      '<call-workflow return="START.md">WORKFLOW</call-workflow>',
      '',
      'STATE is one of: START.md, REVIEW.md, WORKER.md, CHECK.sh, CHECK.md',
      'WORKFLOW is one of: ../research, lib/deploy.meow.toml',
      '',
      'Several forks may stand together if they have the same next.',
    ]);
  });

  test('is short for a single allowed transition', () => {
    expect(reminder(policy(allow('result')), MACHINE, 'Done.')).toEqual([
      'Your last answer could not be followed: the answer has no transition tag.',
      '',
      'End your answer with this tag, exactly as it is written here:',
      '',
      '<result>…</result>',
      '',
      '… is whatever you have to say.',
    ]);
  });

  test('lists every tag without a policy, and tags of other workflows if there are any', () => {
    const forms = [
      '<goto>STATE</goto>',
      '<reset>STATE</reset>',
      '<call return="STATE">STATE</call>',
      '<function return="STATE">STATE</function>',
      '<fork next="STATE">STATE</fork>',
      '<result>…</result>',
      '<ask next="STATE">…</ask>',
    ];
    const elsewhere = [
      '<call-workflow return="STATE">WORKFLOW</call-workflow>',
      '<function-workflow return="STATE">WORKFLOW</function-workflow>',
      '<fork-workflow next="STATE">WORKFLOW</fork-workflow>',
      '<reset-workflow>WORKFLOW</reset-workflow>',
    ];
    const alone = reminder(ANYTHING, { ...MACHINE, workflows: {} }, 'Done.');
    expect(alone.filter((line) => line.startsWith('<'))).toEqual(forms);
    expect(reminder(ANYTHING, MACHINE, 'Done.').filter((line) => line.startsWith('<'))).toEqual([
      ...forms,
      ...elsewhere,
    ]);
  });
});

describe('checkTransitionPolicies', () => {
  const blocks = Object.fromEntries(
    ['START', 'REVIEW', 'WORKER', 'CHECK', 'C2', 'research-START', 'deploy#main', 'ask', 'ask:timed', 'ask:routed'].map(
      (name) => [name, {}],
    ),
  );

  test('accepts a valid machine', () => {
    const steerings = { START: policy(allow('goto', { target: 'REVIEW.md' })) };
    expect(checkTransitionPolicies({ blocks, machines: { main: MACHINE }, steerings })).toEqual([]);
  });

  test('reports each unknown name', () => {
    const machine: Machine = { ...MACHINE, states: { 'A.md': 'A' }, spellings: { B: ['B.md'] } };
    const steerings = {
      a: { ...policy(allow('goto', { target: 'X.md' }), allow('call-workflow', { target: 'y' })), forced: true },
      b: { ...ANYTHING, machine: 'other' },
    };
    expect(checkTransitionPolicies({ blocks, machines: { main: machine }, steerings })).toEqual([
      'machine main: there is no block A',
      'machine main: there is no state B.md',
      'steering a: no single transition is left to force',
      'steering a: there is no state X.md',
      'steering a: there is no workflow y',
      'steering b: there is no machine other',
    ]);
  });
});
