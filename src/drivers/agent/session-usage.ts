// What an agent has used, from the file in which its own program keeps a session: a JSON object a line. Two forms are known: messages
// of the model, each with its usage; and counts of the whole session.

import { Fields, partsOf } from './readers/reader.ts';
import type { TokenParts, Usage } from '../../ir/output.ts';

/** Of the whole session; null if the text reports nothing. */
export function usageInSession(text: string): Usage | null {
  // A message that grows has several lines, of which the last counts.
  const messages = new Map<string, TokenParts>();
  let whole: TokenParts | null = null;
  let model: string | null = null;
  for (const line of text.split('\n')) {
    if (!line.includes('usage')) continue;
    const event = Fields.parse(line);
    if (event === null) continue;
    const message = event.map('message');
    const [id, counts] = [message.id('id'), message.map('usage')];
    const input = counts.sum('input_tokens', 'cache_creation_input_tokens');
    const { parts } = partsOf(input, counts.amount('cache_read_input_tokens'), counts.amount('output_tokens'));
    if (id !== null && parts !== undefined) {
      messages.set(id, parts);
      model = message.id('model') ?? model;
    }
    const total = event.map('payload').map('info').map('total_token_usage');
    const cached = total.amount('cached_input_tokens') ?? 0;
    const told = partsOf((total.amount('input_tokens') ?? Number.NaN) - cached, cached, total.amount('output_tokens'));
    if (total.amount('input_tokens') !== null && told.parts !== undefined) whole = told.parts;
  }
  const parts = whole ?? sumOfParts([...messages.values()]);
  if (parts === null) return null;
  const tokens = parts.input + parts.cached + parts.output;
  return { usd: null, tokens, parts, ...(model === null ? {} : { model }) };
}

function sumOfParts(all: readonly TokenParts[]): TokenParts | null {
  if (all.length === 0) return null;
  return all.reduce((sum, each) => ({
    input: sum.input + each.input,
    cached: sum.cached + each.cached,
    output: sum.output + each.output,
  }));
}

/** What was used between two moments of a session. */
export function usedSince(before: Usage | null, now: Usage): Usage {
  const [a, b] = [before?.parts, now.parts];
  if (b === undefined || a === undefined) return now;
  const parts = {
    input: Math.max(0, b.input - a.input),
    cached: Math.max(0, b.cached - a.cached),
    output: Math.max(0, b.output - a.output),
  };
  return { ...now, tokens: parts.input + parts.cached + parts.output, parts };
}
