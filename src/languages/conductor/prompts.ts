// The prompts of a workflow: each is found and read once, and checked against the inputs of its steps.

import type { Diagnostic } from '../../base/diagnostic.ts';
import type { PromptInput, PromptText } from '../../ir/conducted.ts';
import type { Report } from '../report.ts';
import { listed, suggest } from '../report.ts';
import type { YamlScalar } from '../yaml-tree.ts';
import { RUN_WORDS } from './paths.ts';
import type { PromptFile, Role, VersionedId } from './prompt-file.ts';
import { isPath, readPromptFile, versionedId } from './prompt-file.ts';

/** By `id.vN` in all prompt folders, or by a path relative to the workflow's folder. Null if not found. */
export type FindPrompt = (id: string) => { readonly path: string; readonly text: string } | null;

export class Prompts {
  readonly #report: Report;
  readonly #find: FindPrompt;
  readonly #read = new Map<string, PromptFile | null>();

  /** `report`: of the workflow that names the prompts. */
  constructor(report: Report, find: FindPrompt) {
    this.#report = report;
    this.#find = find;
  }

  /** Null after an error was reported. */
  named(key: string, { text: id, place }: YamlScalar, role: Role): PromptFile | null {
    const expected = isPath(id) ? null : versionedId(id);
    if (expected === null && !isPath(id)) {
      const hint = `Write its id and version, as ${role}.fix.v1, or a path: ./fix.md.`;
      this.#report.error('invalid-prompt-id', place, `"${key}": ${JSON.stringify(id)} names no prompt`, hint);
      return null;
    }
    const file = this.#load(id, expected, role);
    if (file === null) {
      const hint = isPath(id)
        ? 'Paths are seen from the folder of the workflow.'
        : `Write it to prompts/${id}.md beside the workflow, or to .meow/prompts/${id}.md.`;
      this.#report.error('unknown-prompt', place, `there is no prompt ${JSON.stringify(id)}`, hint);
      return null;
    }
    if (file.role === role) return file;
    const message = `"${key}" takes a prompt with the role ${role}, and ${file.path} has the role ${file.role}`;
    this.#report.error('wrong-role', place, message, 'Name another prompt, or correct its role.');
    return null;
  }

  #load(id: string, expected: VersionedId | null, role: Role): PromptFile | null {
    const known = this.#read.get(id);
    if (known !== undefined) return known;
    const found = this.#find(id);
    const file = found === null ? null : readPromptFile(found, expected, role);
    this.#read.set(id, file);
    return file;
  }

  /** For a step, with its inputs. */
  text(id: YamlScalar, file: PromptFile, step: string, given: readonly string[]): PromptText {
    const declared = new Set(file.inputs.map(({ name }) => name));
    const asked = new Set(file.holes.map(({ name }) => name));
    for (const { name, required } of file.inputs) {
      if (!required || given.includes(name)) continue;
      const message = `the prompt ${id.text} needs the input "${name}", and the step "${step}" does not give it`;
      this.#report.error('missing-input', id.place, message, `Add it: inputs: [${[...given, name].join(', ')}].`);
    }
    for (const { name, place } of file.holes) {
      if (declared.has(name) || given.includes(name) || RUN_WORDS.includes(name)) continue;
      const known = [...new Set([...given, ...declared, ...RUN_WORDS])];
      const message = `nothing gives {{${name}}} to the step "${step}"`;
      const hint = (): string => suggest(name, known, `It has ${listed(known)}; for literal braces, write {{{{.`);
      file.report.error('unknown-variable', place, message, hint);
    }
    const untyped = given
      .filter((name) => asked.has(name) && !declared.has(name))
      .map((name): PromptInput => ({ name, type: 'any', required: true }));
    const { version, path, text } = file;
    return { id: id.text, version, path, text, inputs: [...file.inputs, ...untyped] };
  }

  /** Of the prompts themselves. */
  diagnostics(): readonly Diagnostic[] {
    return [...this.#read.values()].flatMap((file) => file?.report.diagnostics() ?? []);
  }
}
