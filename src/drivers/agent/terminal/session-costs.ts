// What the prompts of an agent in a terminal have used, from the file in which its program keeps the session, which its hooks name.
// `costs.jsonl` in the folder of its start says what had been used before each prompt, so that it is the same for a later engine.

import { join } from 'node:path';

import { fields, isText } from '../../../base/shape.ts';
import type { Usage } from '../../../ir/output.ts';
import { isUsage } from '../../../ir/usage-shape.ts';
import { tolerate, UNUSABLE } from '../../../sys/errors.ts';
import { appendLine, readLines, readUntrustedFile } from '../../../sys/files.ts';
import { usageInSession, usedSince } from '../session-usage.ts';

const UNKNOWN: Usage = { usd: null, tokens: null };
const NOTHING: Usage = { usd: null, tokens: 0, parts: { input: 0, cached: 0, output: 0 } };
/** A longer session is not read. */
const BYTES_MAX = 100_000_000;

interface CostLine {
  readonly prompt: string;
  readonly file: string;
  readonly before: Usage;
}

const isCostLine = fields<CostLine>({ prompt: isText, file: isText, before: isUsage });

export class SessionCosts {
  readonly #path: string;

  /** `folder`: of the start of the agent. */
  constructor(folder: string) {
    this.#path = join(folder, 'costs.jsonl');
  }

  /** Called before a prompt is delivered, and again if it is delivered again. `file`: null if it is not known. */
  begin(prompt: string, file: string | null): void {
    if (file === null || this.#before(prompt) !== null) return;
    const before = totalIn(file) ?? NOTHING;
    // A cost that cannot be kept is unknown.
    tolerate(UNUSABLE, undefined, () => appendLine(this.#path, { prompt, file, before }));
  }

  usedBy(prompt: string, file: string | null): Usage {
    const before = this.#before(prompt);
    // Another file is another session.
    if (file === null || before?.file !== file) return UNKNOWN;
    const now = totalIn(file);
    return now === null ? UNKNOWN : usedSince(before.before, now);
  }

  #before(prompt: string): CostLine | null {
    const lines = tolerate(UNUSABLE, [], () => readLines(this.#path, isCostLine));
    return lines.find((line) => line.prompt === prompt) ?? null;
  }
}

function totalIn(file: string): Usage | null {
  const text = readUntrustedFile(file, BYTES_MAX)?.text ?? null;
  return text === null ? null : usageInSession(text);
}
