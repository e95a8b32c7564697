// Texts for agents: prompts, and keys to press. A prompt ends with the expected outputs in workflow order, and the
// command that reports them. `meow prime` shows the same text again.

import type { PromptSpec } from './effect.ts';
import type { Expectation } from './output.ts';

export type AgentMessage = PromptMessage | KeyMessage;

export interface PromptMessage {
  readonly kind: 'prompt';
  /** Id of the effect: a message is accepted once, however often it is sent. */
  readonly id: string;
  readonly step: string;
  /** The workflow's text. */
  readonly prompt: string;
  /** The text shown to the agent: `promptText`. */
  readonly text: string;
  readonly mode: PromptMode;
  readonly expects: readonly Expectation[];
}

export type KeyMessage = Readonly<{ kind: 'key'; id: string; key: string }>;

export type PromptMode = PromptSpec<unknown>['mode'];

export function promptText(prompt: string, mode: PromptMode, expects: readonly Expectation[]): string {
  if (mode === 'fire-forget') return prompt;
  const outputs = expects.length === 0 ? [] : ['', 'Expected outputs:', ...expects.map(outputLine)];
  const report = ['', 'Report when the work is finished, by running:', `  ${doneLine(expects)}`];
  return [prompt.trimEnd(), ...outputs, ...report].join('\n');
}

/** For an agent that stopped before finishing its step. */
export function nudgeText(text: string): string {
  return `${NUDGE}\n\n${text}`;
}

const NUDGE =
  'You stopped before this step was reported: continue it, and report it with meow done (or the tool done) when it ' +
  'is finished.';

/** For an agent whose answer ends its turn: it reports only if outputs are expected. */
export function answeredText({ prompt, text, expects }: PromptMessage): string {
  return expects.length === 0 ? prompt : text;
}

/** In the same words as the first time, so that it is understood in the same way. */
export function askAgain({ mode, expects }: PromptMessage, missing: readonly string[]): string {
  const text = [
    `Your last task is not finished: nothing has been reported for it, and ${missing.join(', ')} must be.`,
    'Finish what is left of the work, if anything, and report.',
  ].join(' ');
  return promptText(text, mode, expects);
}

/** Includes every output; optional ones may be left out. */
export function doneLine(expects: readonly Expectation[]): string {
  return ['meow done', ...expects.map(({ name, type }) => `--output ${name}=<${type}>`)].join(' ');
}

/** The key, if the whole prompt is a tmux key name: `Escape`, `Enter`, `C-c`, `Up`. */
export function keyName(prompt: string): string | null {
  const text = prompt.trim();
  return NAMED_KEY.test(text) || MODIFIED_KEY.test(text) ? text : null;
}

const NAMED_KEY =
  /^(?:[CMS]-)*(?:Escape|Enter|Tab|BTab|Space|BSpace|Up|Down|Left|Right|Home|End|PageUp|PgUp|PageDown|PgDn|DC|IC|F(?:[1-9]|1[0-2]))$/;
const MODIFIED_KEY = /^(?:[CMS]-)+[!-~]$/;

/** Whether the key interrupts an agent's work. */
export function isInterrupt(key: string): boolean {
  return key === 'Escape' || key === 'C-c';
}

function outputLine({ name, type, required, description }: Expectation): string {
  const text = description?.replaceAll(/\s+/g, ' ').trim() ?? '';
  return `  ${name} (${type}, ${required ? 'required' : 'optional'})${text === '' ? '' : `: ${text}`}`;
}
