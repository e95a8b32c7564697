// Any program that writes its answer to stdout and exits with 0.

import { answer, SILENT } from './reader.ts';
import type { ProgramExit, Reader, Reading } from './reader.ts';

export function textReader(): Reader {
  return new TextReader();
}

class TextReader implements Reader {
  readonly essential = [];
  readonly session = null;
  readonly toolInFlight = false;
  text = '';

  line(text: string): void {
    this.text = text;
  }

  longLine(): void {}

  end({ status }: ProgramExit): Reading {
    return { verdict: status === 0 ? answer(null) : SILENT, denied: 0, usage: null };
  }
}
