// The files of a compilation. Each is parsed once; its workflows are read only if something refers to them, so errors
// in others do not matter.

import { hasErrors } from '../../base/diagnostic.ts';
import { makeSource } from '../../base/source.ts';
import type { Report } from '../report.ts';
import { createReport } from '../report.ts';
import { readToml } from '../toml.ts';
import type { Section } from './module.ts';
import { readModule } from './module.ts';
import type { BlockSyntax } from './syntax.ts';
import { readWorkflow } from './workflow.ts';

/** A file and its text; its name, used in messages, is unique. */
export interface MeowFile {
  readonly file: string;
  readonly text: string;
}

export interface Module {
  readonly file: string;
  readonly report: Report;
  readonly sections: readonly Section[];
  /** It could not be read at all, so missing sections are not reported. */
  readonly isBroken: boolean;
  /** Its workflow of that name; null if there is none. */
  readonly block: (name: string) => BlockSyntax | null;
}

/** `prefix`: prefix of the names of its blocks. */
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
