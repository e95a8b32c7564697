// Claude Code, `--output-format stream-json`. One process may print several results, of which the last counts: a
// background command wakes the agent again. A result without a text means the agent's last message. Neither the exit
// code nor `subtype` means success: an API error has the subtype `success`, and an interrupted turn exits with 0.
//
// Costs are counted in one of two ways. As measured: up to 2.1.197 a result reports the costs of the process, from
// 2.1.325 on those of the session, including the session that it was resumed or forked from. The versions in between
// are unknown.

import {
  answer,
  epochMs,
  error,
  essentialFields,
  EventReader,
  partsOf,
  plus,
  SILENT,
  UNNAMED_ERROR,
} from './reader.ts';
import type { Fields, ProgramExit, RawUsage, Verdict } from './reader.ts';

export class ClaudeReader extends EventReader {
  readonly essential = essentialFields('"type":"result"', '"type":"assistant"');
  #version: string | null = null;
  #model: string | null = null;
  #messageId: string | null = null;
  /** Background commands that it waits for. */
  #background = 0;
  #limitUntil: number | null = null;
  #result: Fields | null = null;

  protected onEvent(event: Fields): void {
    this.session = event.id('session_id') ?? this.session;
    switch (event.text('type') ?? '') {
      case 'system':
        if (event.text('subtype') === 'init') {
          this.#version = event.id('claude_code_version');
          this.#model = event.id('model');
        }
        if (event.text('subtype') === 'background_tasks_changed') this.#background = event.mapsAt('tasks').length;
        return;
      case 'assistant':
        this.#onAssistant(event);
        return;
      case 'user':
        for (const block of event.map('message').mapsAt('content')) this.calls.delete(block.id('tool_use_id'));
        return;
      case 'rate_limit_event': {
        const info = event.map('rate_limit_info');
        const resets = info.text('status') === 'rejected' ? info.amount('resetsAt') : null;
        if (resets !== null) this.#limitUntil = epochMs(resets);
        return;
      }
      case 'result':
        this.calls.clear();
        this.denied = Math.max(this.denied, event.mapsAt('permission_denials').length);
        this.#result = event;
    }
  }

  override get toolInFlight(): boolean {
    return super.toolInFlight || this.#background > 0;
  }

  #onAssistant(event: Fields): void {
    const message = event.map('message');
    const isOwn = event.id('parent_tool_use_id') === null;
    for (const block of message.mapsAt('content')) {
      if (block.text('type') === 'tool_use') this.beginCall(block.id('id'));
      const text = block.text('type') === 'text' ? block.text('text') : null;
      if (text === null || !isOwn) continue;
      // Each block of a message is an event of its own.
      if (message.id('id') !== this.#messageId) this.message.begin();
      this.#messageId = message.id('id');
      this.message.add(text);
    }
  }

  protected verdict({ status }: ProgramExit): Verdict {
    const result = this.#result;
    if (result === null) return SILENT;
    if (result.value('is_error') === false) {
      if (status !== 0) return SILENT;
      const [text, structured] = [result.text('result') ?? '', result.value('structured_output')];
      return text === '' ? this.message.verdict(structured) : answer(text, structured);
    }
    const isLimit = result.amount('api_error_status') === 429;
    return error(messageOf(result), isLimit ? { until: this.#limitUntil } : null);
  }

  get usage(): RawUsage | null {
    const result = this.#result;
    if (result === null) return null;
    const models = result.map('modelUsage').maps;
    // A model with an unknown price is counted at the price of another.
    const isPriced = models.every((model) => model.text('costBasis') !== 'unknown');
    const tokens = result.has('modelUsage')
      ? models.map((model) => model.sum(...MODEL_KEYS)).reduce(plus, 0)
      : result.map('usage').sum(...USAGE_KEYS);
    const usage = {
      usd: isPriced ? result.amount('total_cost_usd') : null,
      tokens,
      scope: scopeOf(this.#version),
      ...(this.#model === null ? {} : { model: this.#model }),
    };
    const sumIn = (...keys: readonly string[]): number | null =>
      models.map((model) => model.sum(...keys) ?? 0).reduce((sum, count) => sum + count, 0);
    if (result.has('modelUsage'))
      return { ...usage, ...partsOf(sumIn(...MODEL_INPUT), sumIn(MODEL_CACHED), sumIn('outputTokens')) };
    const counts = result.map('usage');
    const input = counts.sum('input_tokens', 'cache_creation_input_tokens');
    return { ...usage, ...partsOf(input, counts.amount('cache_read_input_tokens'), counts.amount('output_tokens')) };
  }
}

function messageOf(result: Fields): string {
  const errors = result.texts('errors').join('; ');
  const texts = [result.text('result'), errors, result.text('terminal_reason'), result.text('subtype')];
  return texts.find((text) => text !== null && text !== '') ?? UNNAMED_ERROR;
}

const MODEL_INPUT = ['inputTokens', 'cacheCreationInputTokens'];
const MODEL_CACHED = 'cacheReadInputTokens';
const USAGE_KEYS = ['input_tokens', 'output_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'];
const MODEL_KEYS = ['inputTokens', 'outputTokens', 'cacheReadInputTokens', 'cacheCreationInputTokens'];

function scopeOf(version: string | null): RawUsage['scope'] {
  const numbers = /^(\d{1,6})\.(\d{1,6})\.(\d{1,6})/.exec(version ?? '');
  if (numbers === null) return 'untold';
  const comparable = numbers.slice(1).reduce((sum, number) => sum * 1e6 + Number(number), 0);
  if (comparable <= LAST_BY_TURN) return 'turn';
  return comparable >= FIRST_BY_SESSION ? 'session' : 'untold';
}

const LAST_BY_TURN = (2 * 1e6 + 1) * 1e6 + 197;
const FIRST_BY_SESSION = (2 * 1e6 + 1) * 1e6 + 325;
