// What an agent is told: a prompt, or a key that is pressed for it. A prompt ends with what the agent is to hand on, in
// the order of the workflow, and with the one line that reports it; `meow prime` shows the same text again.

import type { PromptSpec } from './effect.ts';
import type { Expectation } from './output.ts';

export type AgentMessage = PromptMessage | KeyMessage;

export interface PromptMessage {
  readonly kind: 'prompt';
  /** Of the effect: a message is taken once, however often it is sent. */
  readonly id: string;
  readonly step: string;
  /** What the workflow says. */
  readonly prompt: string;
  /** What is shown: `promptText`. */
  readonly text: string;
  readonly mode: PromptMode;
  readonly expects: readonly Expectation[];
}

export interface KeyMessage {
  readonly kind: 'key';
  readonly id: string;
  readonly key: string;
}

export type PromptMode = PromptSpec<unknown>['mode'];

export function promptText(prompt: string, mode: PromptMode, expects: readonly Expectation[]): string {
  if (mode === 'fire-forget') return prompt;
  const outputs = expects.length === 0 ? [] : ['', 'Outputs to hand on:', ...expects.map(outputLine)];
  return [
    prompt.trimEnd(),
    ...outputs,
    '',
    'Report when the work is finished, by running:',
    `  ${doneLine(expects)}`,
  ].join('\n');
}

/** For an agent that has stopped in the middle of its step. */
export function nudgeText(text: string): string {
  return `${NUDGE}\n\n${text}`;
}

const NUDGE =
  'You stopped before this step was reported: go on with it, and report it with meow done (or the tool done) when it ' +
  'is finished.';

/** For an agent whose answer ends its work: it need not report, unless there is something to hand on. */
export function answeredText({ prompt, text, expects }: PromptMessage): string {
  return expects.length === 0 ? prompt : text;
}

/** With a place for every output; those that are optional may be left out. */
export function doneLine(expects: readonly Expectation[]): string {
  return ['meow done', ...expects.map(({ name, type }) => `--output ${name}=<${type}>`)].join(' ');
}

/** The key, where the whole prompt is the name of one, as tmux knows them: `Escape`, `Enter`, `C-c`, `Up`. */
export function keyName(prompt: string): string | null {
  const text = prompt.trim();
  return NAMED_KEY.test(text) || MODIFIED_KEY.test(text) ? text : null;
}

const NAMED_KEY =
  /^(?:[CMS]-)*(?:Escape|Enter|Tab|BTab|Space|BSpace|Up|Down|Left|Right|Home|End|PageUp|PgUp|PageDown|PgDn|DC|IC|F(?:[1-9]|1[0-2]))$/;
const MODIFIED_KEY = /^(?:[CMS]-)+[!-~]$/;

/** What makes an agent leave what it is doing. */
export function isInterrupt(key: string): boolean {
  return key === 'Escape' || key === 'C-c';
}

function outputLine({ name, type, required, description }: Expectation): string {
  const said = description?.replaceAll(/\s+/g, ' ').trim() ?? '';
  return `  ${name} (${type}, ${required ? 'required' : 'optional'})${said === '' ? '' : `: ${said}`}`;
}
