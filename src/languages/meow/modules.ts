// The files of a compilation: each is parsed once, and its workflows are read when somebody leads to them, so that what is
// wrong with others does not matter.

import { hasErrors } from '../../base/diagnostic.ts';
import { makeSource } from '../../base/source.ts';
import type { Report } from '../report.ts';
import { createReport } from '../report.ts';
import { readToml } from '../toml.ts';
import type { Section } from './module.ts';
import { readModule } from './module.ts';
import type { BlockSyntax } from './syntax.ts';
import { readWorkflow } from './workflow.ts';

/** A file and its text; the name is what messages call it, and no two files have the same. */
export interface MeowFile {
  readonly file: string;
  readonly text: string;
}

export interface Module {
  readonly file: string;
  readonly report: Report;
  readonly sections: readonly Section[];
  /** Whether it could not be read at all: then there is no saying what it lacks. */
  readonly isBroken: boolean;
  /** Its workflow of that name; null where there is none. */
  readonly block: (name: string) => BlockSyntax | null;
}

/** `prefix` goes before the names of its blocks. */
export function openModule({ file, text }: MeowFile, prefix: string): Module {
  const report = createReport(makeSource(file, text));
  const tree = readToml(report);
  const sections = tree === null ? [] : readModule(report, tree);
  const byName = new Map(sections.map((section) => [section.name, section]));
  const blocks = new Map<string, BlockSyntax>();
  return {
    file,
    report,
    sections,
    isBroken: sections.length === 0 && hasErrors(report.diagnostics()),
    block: (name) => {
      const section = byName.get(name);
      if (section === undefined) return null;
      const block = blocks.get(name) ?? readWorkflow(report, section, `${prefix}${name}`);
      blocks.set(name, block);
      return block;
    },
  };
}
