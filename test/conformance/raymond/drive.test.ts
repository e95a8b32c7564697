// Compiled workflows, driven through the kernel: the order of states, their sessions, and their prompts.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

import { present } from '../../../src/base/errors.ts';
import type { Program } from '../../../src/ir/program.ts';
import { compileRaymond } from '../../../src/languages/raymond/compile.ts';
import type { RaymondFile, RaymondSource } from '../../../src/languages/raymond/syntax.ts';
import { readSimScript } from '../../../src/sim/script.ts';
import { drive, toldTo } from './drive.ts';
import { ADAPTERS, compileAt, validateAt } from './rig.ts';

const EXAMPLES = join(import.meta.dirname, '../../../examples/raymond');

function example(name: string): Program {
  return present(compileAt(EXAMPLES, name, { given: ['input', 'customer'] }).program, `${name} does not compile`);
}

/** A workflow of prompts, by their names. */
function prompts(texts: Readonly<Record<string, string>>): Program {
  const files = Object.entries(texts).map(
    ([name, text]): RaymondFile => ({ name, file: name, text, isExecutable: false, path: name, leadsOut: false }),
  );
  const source: RaymondSource = { kind: 'folder', key: 'test', name: 'test', files, start: null };
  const { program, diagnostics } = compileRaymond({ source, given: [], adapters: ADAPTERS, find: () => null });
  return present(program, diagnostics.map(({ message }) => message).join('\n'));
}

describe('the examples', () => {
  const workflows = readdirSync(EXAMPLES).filter((name) => !/\.(?:md|toml)$/.test(name));

  test.each(workflows)('%s is valid', (name) => {
    const { program, diagnostics } = compileAt(EXAMPLES, name, { given: ['input', 'customer'] });
    expect(diagnostics).toEqual([]);
    expect(program).not.toBeNull();
    // Some intentionally never end, and one needs a customer.
    const meant = ['unbounded-fork', 'unknown-placeholder'];
    const told = validateAt(EXAMPLES, name).filter(({ code }) => !meant.includes(code));
    expect(told).toEqual([]);
  });

  test.each(workflows)('%s has a script for simulated agents', (name) => {
    const script = `${name.replace(/\.yaml$/, '')}.sim.toml`;
    expect(readSimScript(readFileSync(join(EXAMPLES, script), 'utf8'), script).diagnostics).toEqual([]);
  });

  test('all scripts are executable', () => {
    const scripts = readdirSync(EXAMPLES, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.sh'));
    expect(scripts.length).toBeGreaterThan(3);
    for (const name of scripts) expect(statSync(join(EXAMPLES, name)).mode & 0o111).not.toBe(0);
  });

  test('ralph: a new session each time', () => {
    const { lines, state } = drive(example('ralph'), {
      'main.3.START': '<result>all done</result>',
      '*': 'One more. <reset>START.md</reset>',
    });
    expect(lines).toEqual(['main.1.START fresh → s1', 'main.2.START fresh → s2', 'main.3.START fresh → s3']);
    expect(state.end).toBe('done');
  });

  test('ralph: ends after its limit', () => {
    const { lines } = drive(example('ralph'), { '*START': '<reset>START.md</reset>', '*': '<result>a loop</result>' });
    expect(lines).toHaveLength(21);
    expect(lines.at(-1)).toBe('main.21.GIVE-UP fresh → s21');
  });

  test('review-loop: one session for all states, and at most five reviews', () => {
    const driven = drive(
      example('review-loop'),
      {
        '*START': '<goto>REVIEW.md</goto>',
        '*REVIEW': '```\n<goto>REVIEW</goto>\n```',
        '*': '<result>Add it</result>',
      },
      { input: 'a feature' },
    );
    expect(driven.lines).toEqual([
      'main.1.START fresh → s1',
      ...[2, 3, 4, 5, 6].map((n) => `main.${String(n)}.REVIEW resume s1 → s1`),
      'main.7.COMMIT resume s1 → s1',
    ]);
    expect(toldTo(driven, 'main.1.START#1')).toMatch(/^Implement this: a feature\n/);
    expect(toldTo(driven, 'main.4.REVIEW#1')).toMatch(/^This is review 3 of at most 5\./);
  });

  test('research: the search is forgotten, and its result is kept', () => {
    const driven = drive(
      example('research'),
      {
        '*START': '<call return="ANSWER.md">LOOK.md</call>',
        'main.2.LOOK': '<goto>LOOK</goto>',
        '*LOOK': '<result>\nparser.ts\n</result>',
        '*': '<result>There.</result>',
      },
      { input: 'Where?' },
    );
    expect(driven.lines).toEqual([
      'main.1.START fresh → s1',
      'main.2.LOOK fork s1 → s2',
      'main.3.LOOK resume s2 → s2',
      'main.4.ANSWER resume s1 → s1',
    ]);
    expect(toldTo(driven, 'main.4.ANSWER#1')).toContain('\n\nparser.ts\n\n');
    expect(driven.state).toMatchObject({ end: 'done' });
  });

  test('fan-out: three workers, each with its own attributes', () => {
    const fork = (module: string): string => `<fork next="WAIT.sh" module="${module}">WORKER.md</fork>`;
    const driven = drive(example('fan-out'), {
      '*START': `${fork('base')}${fork('ir')}${fork('kernel')}`,
      '*WORKER': '<result>done</result>',
      '*WAIT': '<reset input="3">INDEX.md</reset>',
      '*': 'The index is there.',
    });
    expect(driven.lines).toEqual([
      'main.1.START fresh → s1',
      'main.2.WAIT runs',
      'main_worker1.1.WORKER fresh → s2',
      'main_worker2.1.WORKER fresh → s3',
      'main_worker3.1.WORKER fresh → s4',
      'main.3.INDEX fresh → s5',
    ]);
    expect(toldTo(driven, 'main_worker2.1.WORKER#1')).toMatch(/^Write a summary of the module ir to summaries\/ir\.md/);
    expect(driven.asked.get('main_worker2.1.WORKER#1')?.spec).toMatchObject({ model: 'small' });
    expect(toldTo(driven, 'main.3.INDEX#1')).toMatch(/^There are 3 summaries/);
  });

  test('poll: a worker for each item, whose attributes last for its life', () => {
    const driven = drive(example('poll'), {
      'main.1.START': '<print>found 7</print><fork next="START.sh" issue="7">WORKER.md</fork>',
      '*START': '<result>stopped</result>',
      '*WORKER': '<goto>CLOSE.md</goto>',
      '*': '<result>closed</result>',
    });
    expect(driven.lines).toEqual([
      'main.1.START runs',
      'main.1.START prints: found 7',
      'main.2.START runs',
      'main_worker1.1.WORKER fresh → s1',
      'main_worker1.2.CLOSE resume s1 → s1',
    ]);
    expect(toldTo(driven, 'main_worker1.2.CLOSE#1')).toContain('<result>closed 7</result>');
    expect(toldTo(driven, 'main.1.START#1')).toBe("exec 'poll/START.sh'");
  });

  test('ask: the answer is passed on, in the session that asked', () => {
    const driven = drive(example('ask'), {
      '*START': '<ask next="DECIDED.md">Which?</ask>',
      '*DECIDED': '<result>ordered</result>',
    });
    expect(driven.lines).toEqual(['main.1.START fresh → s1', 'main.2.ask asks: Which?']);
    expect(driven.state.timers.get('main.2.ask#1 timeout')?.at).toBe(48 * 3_600_000);
    const verdict = { approved: true, by: 'ann', notes: null, answer: 'the second' };
    driven.hear({ kind: 'gate-decided', gate: 'main.2.ask', verdict, message: null });
    expect(driven.lines.at(-1)).toBe('main.3.DECIDED resume s1 → s1');
    expect(toldTo(driven, 'main.3.DECIDED#1')).toMatch(/^The answer is: the second\n/);
    expect(driven.state.end).toBe('done');
  });

  test('ask: times out', () => {
    const driven = drive(example('ask'), {
      '*START': '<ask next="DECIDED.md">Which?</ask>',
      '*LATE': '<result>nothing was ordered</result>',
    });
    driven.hear({ kind: 'deadline-passed', timer: 'main.2.ask#1 timeout' }, 48 * 3_600_000);
    expect(driven.lines.slice(2)).toEqual(['main.2.ask failed: not decided in time', 'main.3.LATE resume s1 → s1']);
    expect(driven.state.end).toBe('done');
  });

  test('release: scripts see the results of functions, and a judge has no memory', () => {
    const driven = drive(example('release'), {
      '*START': '<goto>NOTES.md</goto>',
      '*NOTES': 'Written.',
      'main.3.JUDGE': '<result>NO</result>',
      'main.4.DONE': "<goto input='A stranger would not understand them.'>NOTES.md</goto>",
      '*JUDGE': '<result>YES</result>',
      '*': '<result>ready</result>',
    });
    expect(driven.lines).toEqual([
      'main.1.START runs',
      'main.2.NOTES fresh → s1',
      'main.3.JUDGE fresh → s2',
      'main.4.DONE runs',
      'main.5.NOTES resume s1 → s1',
      'main.6.JUDGE fresh → s3',
      'main.7.DONE runs',
    ]);
    expect(driven.asked.get('main.4.DONE#1')?.spec).toMatchObject({
      env: { RAYMOND_RESULT: 'NO', RAYMOND_INPUT: 'NO' },
    });
    expect(toldTo(driven, 'main.5.NOTES#1')).toContain('A stranger would not understand them.');
  });

  test('composed: another workflow is a call', () => {
    const driven = drive(
      example('composed'),
      {
        'main.1.START': '<call-workflow return="REPLY.md" input="Where?">../research</call-workflow>',
        '*research-START': '<call return="ANSWER.md">LOOK.md</call>',
        '*research-LOOK': '<result>there</result>',
        '*research-ANSWER': '<result>It is there.</result>',
        '*REPLY': '<result>sent</result>',
      },
      { input: 'Where?' },
    );
    expect(driven.lines).toEqual([
      'main.1.START fresh → s1',
      'main.2.research-START fork s1 → s2',
      'main.3.research-LOOK fork s2 → s3',
      'main.4.research-ANSWER resume s2 → s2',
      'main.5.REPLY resume s1 → s1',
    ]);
    expect(toldTo(driven, 'main.2.research-START#1')).toMatch(/^Answer this question: Where\?/);
    expect(toldTo(driven, 'main.5.REPLY#1')).toMatch(
      /^Write a reply, in your own words, from this answer: It is there\.\n/,
    );
  });

  test('single: a file works like a folder', () => {
    const driven = drive(example('single.yaml'), {
      'main.5.START': '<result>all tests pass</result>',
      '*START': '<reset>FIX</reset>',
      '*': 'Fixed.',
    });
    expect(driven.lines).toEqual([
      'main.1.START runs',
      'main.2.FIX fresh → s1',
      'main.3.START runs',
      'main.4.FIX fresh → s2',
      'main.5.START runs',
    ]);
    expect(toldTo(driven, 'main.1.START#1')).toMatch(/^exec "\$\(command -v bash \|\| echo sh\)" -c 'if \.\/run-tests/);
  });
});

describe('an answer without a valid transition', () => {
  const program = prompts({
    'START.md': '---\nallowed_tags: [goto]\n---\nGo on with <goto>DONE.md</goto>.',
    'DONE.md': '<result>x</result>',
  });

  test('is rejected with a reminder in the same session that lists the allowed transitions', () => {
    const driven = drive(program, {
      '*START': ['I am done.', '<goto>DUNE.md</goto>', '<goto>DONE</goto>'],
      '*': '<result>x</result>',
    });
    expect(driven.lines).toEqual([
      'main.1.START fresh → s1',
      'main.1.START#2 resume s1 → s1',
      'main.1.START#3 resume s1 → s1',
      'main.2.DONE resume s1 → s1',
    ]);
    expect(toldTo(driven, 'main.1.START#2')).toBe(
      [
        'Your last answer could not be followed: the answer has no transition tag.',
        '',
        'End your answer with this tag, exactly as it is written here:',
        '',
        '<goto>STATE</goto>',
        '',
        'STATE is one of: START.md, DONE.md',
      ].join('\n'),
    );
    expect(toldTo(driven, 'main.1.START#3')).toContain('there is no state "DUNE.md"; did you mean DONE.md?');
  });

  test('fails its agent the third time', () => {
    const { lines, state } = drive(program, { '*': 'I am done.' });
    expect(lines.at(-1)).toBe('main.1.START failed: the answer has no transition tag');
    expect(lines.filter((line) => line.includes('→'))).toHaveLength(3);
    expect(state.end).toBe('failed');
  });

  test('of a script fails it at once', () => {
    const scripts = prompts({ 'START.sh': 'echo nothing', 'DONE.md': '<result>x</result>' });
    expect(drive(scripts, { '*': 'nothing' }).lines).toEqual([
      'main.1.START runs',
      'main.1.START failed: the output has no transition tag',
    ]);
  });

  test('does not affect the siblings of its agent', () => {
    const forks = prompts({ 'START.md': 'Fork.', 'W.md': 'Work on {{n}}.', 'DONE.md': 'Done.' });
    const { lines, state } = drive(forks, {
      '*START': '<fork next="DONE.md" n="1">W.md</fork><fork next="DONE.md" n="2">W.md</fork>',
      'main_w1.*': 'nothing',
      '*': '<result>x</result>',
    });
    expect(lines).toContain('main_w2.1.W fresh → s3');
    expect(lines).toContain('main.2.DONE resume s1 → s1');
    expect(state.end).toBe('failed');
  });
});

describe('values of a lane', () => {
  const program = prompts({
    'START.md': 'Begin.',
    'WORK.md': '---\nmodel: large\n---\nWork.',
    'LOOK.md': '---\nadapter: other\n---\nLook.',
    'DONE.md': 'Done: {{result}}.',
  });

  test('the folder is kept after a reset; a function has its own, and a return restores it', () => {
    const { lines } = drive(program, {
      '*START': '<reset cd="sub">WORK.md</reset>',
      'main.2.WORK': '<function return="DONE.md" cd="../other" input="x">LOOK.md</function>',
      '*LOOK': '<goto>WORK.md</goto>',
      'main.4.WORK': '<result>found</result>',
      '*': '<result>x</result>',
    });
    expect(lines).toEqual([
      'main.1.START fresh → s1',
      'main.2.WORK fresh → s2 in sub',
      'main.3.LOOK fresh → s3 in other',
      'main.4.WORK resume s3 → s3 in other',
      'main.5.DONE resume s2 → s2 in sub',
    ]);
  });

  test('the adapter is that of the session, and the model that of each state', () => {
    const driven = drive(program, {
      '*START': '<function return="DONE.md" model="small">LOOK.md</function>',
      '*LOOK': '<goto>WORK.md</goto>',
      'main.3.WORK': '<result>found</result>',
      '*': '<result>x</result>',
    });
    const used = [...driven.asked.values()].map(({ variables }) => [variables['@adapter'], variables['@model']]);
    expect(used).toEqual([
      ['sim', ''],
      ['other', 'small'],
      ['other', 'large'],
      ['sim', ''],
    ]);
    expect(toldTo(driven, 'main.4.DONE#1')).toBe('Done: found.');
  });

  test('a value is inserted once, whatever it contains', () => {
    const driven = drive(program, {
      '*START': '<goto input="{{agent_id}} {{nothing}}">DONE.md</goto>',
      '*': '<result>x</result>',
    });
    expect(toldTo(driven, 'main.2.DONE#1')).toBe('Done: {{agent_id}} {{nothing}}.');
  });

  test('the input of an earlier state is not kept', () => {
    const driven = drive(program, {
      '*START': '<goto input="x">WORK.md</goto>',
      '*WORK': '<goto>DONE.md</goto>',
      '*': '<result>x</result>',
    });
    expect(toldTo(driven, 'main.3.DONE#1')).toBe('Done: .');
  });
});

describe('the return stack', () => {
  const texts = { 'START.md': 'Begin.', 'A.md': 'A.', 'B.md': 'B.', 'C.md': 'C: {{result}}' };

  test('is dropped by a reset, with a warning', () => {
    const { lines } = drive(prompts(texts), {
      '*START': '<call return="C.md">A.md</call>',
      '*A': '<reset>B.md</reset>',
      '*': '<result>x</result>',
    });
    expect(lines).toEqual([
      'main.1.START fresh → s1',
      'main.2.A fork s1 → s2',
      'warned: main: a reset dropped 1 pending return(s)',
      'main.3.B fresh → s3',
    ]);
  });

  test('is kept if the workflow says so', () => {
    const keeping = { ...texts, 'START.md': '---\nreset: keep-stack\n---\nBegin.' };
    const { lines } = drive(prompts(keeping), {
      '*START': '<call return="C.md">A.md</call>',
      '*A': '<reset>B.md</reset>',
      '*': '<result>x</result>',
    });
    expect(lines).toEqual([
      'main.1.START fresh → s1',
      'main.2.A fork s1 → s2',
      'main.3.B fresh → s3',
      'main.4.C resume s1 → s1',
    ]);
  });

  test('grows with calls, and shrinks with returns', () => {
    const { lines } = drive(prompts(texts), {
      '*START': '<call return="C.md">A.md</call>',
      'main.2.A': '<function return="B.md">A.md</function>',
      'main.3.A': '<result>a</result>',
      '*B': '<result>b</result>',
      '*': '<result>c</result>',
    });
    expect(lines).toEqual([
      'main.1.START fresh → s1',
      'main.2.A fork s1 → s2',
      'main.3.A fresh → s3',
      'main.4.B resume s2 → s2',
      'main.5.C resume s1 → s1',
    ]);
  });
});
