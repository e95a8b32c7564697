// What is started for one turn, whoever starts it: by ourselves (turn-launcher.ts), or by the recorder.

import type { ProcessRequest } from '../../process.ts';

export interface ProgramRequest extends Omit<ProcessRequest, 'path' | 'args'> {
  /** What is to be run. */
  readonly bare: BareCommand;
  /** A shell that runs it and records its end, for those who do not. */
  shelled(): Pick<ProcessRequest, 'path' | 'args'>;
  /** Left in its folder before it begins. */
  readonly files: { readonly prompt: string; readonly plan: string };
}

export interface BareCommand {
  /** Absolute; null: nothing is to be read. */
  readonly stdin: string | null;
  /** The path of a shell, and a text for it. */
  readonly shell: string;
  readonly text: string;
  /** Where the text is nothing but words: the program, and they. Where that cannot be run, the shell says why. */
  readonly direct: { readonly program: string; readonly words: readonly string[] } | null;
}

/** The name of the file that has the prompt. */
export const PROMPT = 'prompt';
