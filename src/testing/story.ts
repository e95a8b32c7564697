// The story of a run as text: one line for each thing that happened, with the time since the start of the run. It is the
// same in every repetition, so it names no temporary folder and no commit.

import { segmentMatcher } from '../base/names.ts';
import { sanitize } from '../base/sanitize.ts';
import { exactDuration } from '../base/time.ts';
import { Timeline } from '../view/timeline.ts';
import type { TestFailure } from './failures.ts';
import type { WorldEnd } from './world.ts';

export interface StoryLine {
  readonly step: string | null;
  readonly text: string;
}

export function storyOf({ records, state }: Pick<WorldEnd, 'records' | 'state'>): readonly StoryLine[] {
  const timeline = new Timeline();
  const startedAt = records[0]?.at ?? 0;
  const folder = state.request?.cwd ?? null;
  const shown = (text: string): string =>
    sanitize(folder === null ? text : text.replaceAll(`${folder}/`, '').replaceAll(folder, '.')).replaceAll(
      COMMIT_ID,
      'COMMIT',
    );
  return records.flatMap((record) =>
    timeline.lines(record).map(({ at, step, text }) => {
      const when = `+${exactDuration(Math.max(0, at - startedAt))}`;
      return { step, text: `${when} ${step === null ? '' : `${sanitize(step)} `}${shown(text)}` };
    }),
  );
}

const COMMIT_ID = /\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b/g;

export function storyText(story: readonly StoryLine[]): string {
  return story.map(({ text }) => `${text}\n`).join('');
}

/** Compares the story with a stored one. `stored`: null if there is none. */
export function judgeStory(stored: string | null, story: string): readonly TestFailure[] {
  if (stored === story) return [];
  const failure = { expect: 'trace', expected: stored, got: story };
  if (stored === null) return [{ ...failure, message: 'the trace does not exist; write it with: meow test --update' }];
  const [was, is] = [stored.split('\n'), story.split('\n')];
  const at = is.findIndex((line, index) => line !== was[index]);
  const line = at < 0 ? is.length : at;
  const context = is.slice(Math.max(0, line - 2), line).map((each) => `    ${each}`);
  const message = [
    `the trace differs in line ${line + 1}; if that is right: meow test --update`,
    ...context,
    `  - ${was[line] ?? ''}`,
    `  + ${is[line] ?? ''}`,
  ];
  return [{ ...failure, message: message.join('\n') }];
}

const LINES_MAX = 6;

/** Adds the lines of the story that explain a failure to its message. */
export function explained(failure: TestFailure, story: readonly StoryLine[]): TestFailure {
  const lines = linesFor(failure, story);
  return lines.length === 0
    ? failure
    : { ...failure, message: [failure.message, ...lines.map(({ text }) => `  ${text}`)].join('\n') };
}

function linesFor({ expect, expected, got }: TestFailure, story: readonly StoryLine[]): readonly StoryLine[] {
  const [, kind = '', key = ''] = /^([a-z_]+)(?:\.(.*))?$/s.exec(expect) ?? [];
  switch (kind) {
    case 'run':
      // `run.0` is a pattern of commands.
      return key === '' ? story.slice(-LINES_MAX) : [];
    case 'error':
    case 'took':
    case 'max_records':
      return story.slice(-LINES_MAX);
    case 'steps':
    case 'outcomes':
    case 'visits':
      return about(story, [key]);
    case 'outputs':
      return story.filter(({ step }) => step !== null && key.startsWith(`${step}.`)).slice(-LINES_MAX);
    case 'order':
      return about(story, typeof expected === 'string' ? expected.split('<').map((part) => part.trim()) : []);
    case 'never':
      return typeof got === 'string' ? until(story, got) : [];
    case 'claim':
      return typeof got === 'string' ? until(story, got) : story.slice(-LINES_MAX);
    default:
      return [];
  }
}

function about(story: readonly StoryLine[], patterns: readonly string[]): readonly StoryLine[] {
  const matchers = patterns.map(segmentMatcher);
  return story.filter(({ step }) => step !== null && matchers.some((matches) => matches(step))).slice(-LINES_MAX);
}

/** What happened up to the start of a step. */
function until(story: readonly StoryLine[], step: string): readonly StoryLine[] {
  const at = story.findIndex((line) => line.step === step);
  return at < 0 ? story.slice(-LINES_MAX) : story.slice(Math.max(0, at + 1 - LINES_MAX), at + 1);
}
