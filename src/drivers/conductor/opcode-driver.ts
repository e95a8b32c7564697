// The driver of opcodes: each kind has its performer. What the world does is a failure in the answer; an exception is a bug
// of ours, and ends the engine, save one of the system about the run's own files.

import { Bug } from '../../base/assert.ts';
import { ABSENT, EXHAUSTED, isErrno, REFUSED } from '../../sys/errno.ts';
import type { Answer, Driver, Note, StopHow } from '../../engine/ports.ts';
import type { Effect, Outcome } from '../../ir/effect.ts';
import { PendingEffects } from '../pending-effect.ts';
import type { PendingEffect } from '../pending-effect.ts';
import { failed } from './asking.ts';
import type { OpcodeContext } from './context.ts';
import { performEvaluate } from './evaluate.ts';
import { performHalt } from './halt.ts';
import { performRollback } from './rollback.ts';
import { scriptDriver } from './script-environment.ts';
import { performValidate } from './validate.ts';
import { performWork } from './work.ts';

/** `graceMs`: between asking a script validator to end and ending it; as for any command, save in tests. */
export function opcodeDriver(context: OpcodeContext, options: { readonly graceMs?: number } = {}): Driver {
  return new OpcodeDriver(context, scriptDriver(context, options.graceMs));
}

class OpcodeDriver implements Driver {
  readonly #context: OpcodeContext;
  readonly #scripts: Driver;
  readonly #open = new PendingEffects();

  constructor(context: OpcodeContext, scripts: Driver) {
    this.#context = context;
    this.#scripts = scripts;
  }

  start(effect: Effect, answer: Answer, note: Note = unheard): void {
    this.find(effect, answer, note);
  }

  /** What performers have done in an earlier life of the engine they see by themselves. */
  find(effect: Effect, answer: Answer, note: Note = unheard): void {
    this.#open.ask(effect.id, answer, (asked) => this.#perform(effect, asked, note));
  }

  stop(effectId: string, how: StopHow): void {
    this.#open.get(effectId)?.stop(how);
  }

  async #perform(effect: Effect, asked: PendingEffect, note: Note): Promise<Outcome> {
    try {
      return await this.#performAs(effect, asked, note);
    } catch (error) {
      if (!isErrno(error, ...REFUSED, ...EXHAUSTED, ...ABSENT)) throw error;
      return failed('refused', `what it does cannot be recorded: ${error.message}`);
    }
  }

  #performAs(effect: Effect, asked: PendingEffect, note: Note): Promise<Outcome> {
    const { spec } = effect;
    const [context, known] = [this.#context, { effect, asked, note }];
    switch (spec.kind) {
      case 'work':
        return performWork(context, { ...known, spec });
      case 'validate':
        return performValidate(context, { ...known, spec }, this.#scripts);
      case 'evaluate':
        return performEvaluate(context, { ...known, spec });
      case 'rollback':
        return performRollback(context, { ...known, spec });
      case 'halt':
        return performHalt(context, { ...known, spec });
      default:
        throw new Bug(`no opcode: ${effect.id} is a ${spec.kind}`);
    }
  }
}

/** Of those who do not want to be told. */
const unheard: Note = () => Promise.resolve();
