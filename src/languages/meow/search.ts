// Finds the files that references may mean. The caller adds files one by one and receives the names to look for next.

import type { Json } from '../../base/json.ts';
import { parseTemplate } from '../template.ts';
import type { TomlTable } from '../toml-tree.ts';
import type { StaticValues } from './static-values.ts';
import { collectStaticValues } from './static-values.ts';
import type { MeowFile } from './modules.ts';
import { openModule } from './modules.ts';
import type { Section } from './module.ts';
import { fileOf, namesRecovery, parseReference } from './target.ts';
import { stepTables, targetTables } from './step-tables.ts';

/** A file named `name` in the file `from`. */
export interface Wanted {
  readonly from: string;
  readonly name: string;
}

export interface Search {
  /** New names to look for, each once. */
  readonly add: (file: MeowFile) => readonly Wanted[];
}

/** `given`: variables of the run, for references that contain a variable. */
export function createSearch(given: Readonly<Record<string, Json>>): Search {
  const modules: { readonly file: string; readonly sections: readonly Section[] }[] = [];
  const told = new Set<string>();
  return {
    add: (file) => {
      if (!MAY_REFER.test(file.text)) return [];
      modules.push({ file: file.file, sections: openModule(file, '').sections });
      const known = collectStaticValues(modules, given);
      const wanted: Wanted[] = [];
      for (const module of modules) {
        for (const each of wantedBy(module, known)) {
          const key = JSON.stringify([each.from, each.name]);
          if (told.has(key)) continue;
          told.add(key);
          wanted.push(each);
        }
      }
      return wanted;
    },
  };
}

/** Only files that match can refer to others: they contain such a key, or an escape that may spell one. */
const MAY_REFER = /template|on_error|\\[uUx]/;

function* wantedBy(
  { file, sections }: { readonly file: string; readonly sections: readonly Section[] },
  known: StaticValues,
): Generator<Wanted> {
  const own = new Set(sections.map(({ name }) => name));
  for (const text of sections.flatMap(referencesIn)) {
    const { parts } = parseTemplate(text);
    const isOpen = parts.some((part) => typeof part !== 'string');
    for (const possible of isOpen ? known.textsOf(parts) : [{ text, file: null }]) {
      const reference = parseReference(possible.text);
      if (reference === null || (reference.kind === 'either' && own.has(reference.name))) continue;
      const name = fileOf(reference);
      if (name === null) continue;
      yield { from: file, name };
      if (possible.file !== null && possible.file !== file) yield { from: possible.file, name };
    }
  }
}

function referencesIn(section: Section): readonly string[] {
  return stepTables(section).flatMap((step) => {
    const templates = targetTables(step).map((table) => textAt(table, 'template'));
    const recovery = textAt(step, 'on_error').filter(namesRecovery);
    return [...templates.flat(), ...recovery];
  });
}

function textAt(table: TomlTable, key: string): readonly string[] {
  const value = table.entries.get(key)?.value;
  return value?.kind === 'string' ? [value.value] : [];
}
