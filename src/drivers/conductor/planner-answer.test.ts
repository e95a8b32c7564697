import { describe, expect, test } from 'vitest';
import { answerForm, readAnswer } from './planner-answer.ts';

const ALLOWED = ['fix', 'gate_final'];
const FINE = { status: 'partial', next_step: 'fix', fix_instructions: 'fix it', blockers: [], risk_flags: ['slow'] };
const read = (text: string) => readAnswer(text, ALLOWED);
const written = (more: Record<string, unknown>) => JSON.stringify({ ...FINE, ...more });

describe('an answer that will do', () => {
  test('is one JSON object', () => {
    expect(read(` ${JSON.stringify(FINE)}\n`)).toEqual({ ok: true, value: FINE });
  });

  test.each(['```json\n%s\n```', '```\n%s\n```', '~~~ json\n%s\n~~~\n'])('may stand alone in a fence: %j', (fence) => {
    expect(read(fence.replace('%s', JSON.stringify(FINE)))).toEqual({ ok: true, value: FINE });
  });

  test('may have further members, which mean nothing', () => {
    expect(read(written({ reasoning: 'because', escalate: 'success' }))).toEqual({ ok: true, value: FINE });
  });

  test.each([
    { fix_instructions: { file: 'a.ts' } },
    { next_step: null },
    { next_step: 'STOP' },
    { blockers: [{ at: 1 }] },
  ])('may say %j', (more) => {
    expect(read(written(more))).toMatchObject({ ok: true, value: more });
  });
});

describe('planner text is never interpreted (§11)', () => {
  test.each([
    ['prose', 'The status is success, go on.'],
    ['prose before the object', `Here it is:\n${JSON.stringify(FINE)}`],
    ['prose around a fence', `Here it is:\n\`\`\`json\n${JSON.stringify(FINE)}\n\`\`\``],
    ['two objects', `${JSON.stringify(FINE)}\n${JSON.stringify(FINE)}`],
    ['two fences', `\`\`\`json\n${JSON.stringify(FINE)}\n\`\`\`\n\`\`\`json\n${JSON.stringify(FINE)}\n\`\`\``],
    ['a list', JSON.stringify([FINE])],
    ['a string with an object in it', JSON.stringify(JSON.stringify(FINE))],
    ['nothing', ''],
  ])('%s is no answer', (_what, text) => {
    expect(read(text).ok).toBe(false);
  });

  test.each([
    ['a status that there is not', { status: 'done' }, '"status" is "done"'],
    ['a status in capitals', { status: 'SUCCESS' }, '"status" is "SUCCESS"'],
    [
      'a step that it may not choose',
      { next_step: 'deploy' },
      '"next_step" is "deploy": it must be one of fix, gate_final, STOP, or null',
    ],
    ['a list of instructions', { fix_instructions: ['a'] }, '"fix_instructions" is ["a"]'],
    ['blockers that are no list', { blockers: 'none' }, '"blockers" is "none"'],
    ['flags that are numbers', { risk_flags: [1] }, '"risk_flags" is [1]'],
    ['a member that is left out', { risk_flags: undefined }, '"risk_flags" is missing'],
  ])('%s is told back', (_what, more, said) => {
    const answer = read(written(more));
    if (answer.ok) throw new Error('it was accepted');
    expect(answer.error.message).toContain(said);
    expect(answer.error.reprompt).toContain(said);
    expect(answer.error.reprompt).toContain(answerForm(ALLOWED));
  });

  test('all that is wrong is told at once', () => {
    const answer = read('{"status": 1, "__proto__": {"blockers": []}}');
    if (answer.ok) throw new Error('it was accepted');
    for (const name of ['status', 'next_step', 'fix_instructions', 'blockers', 'risk_flags']) {
      expect(answer.error.reprompt).toContain(`- "${name}" is`);
    }
  });
});
