// `meow validate`: every problem of every file.

import { Adapters } from '../../app/adapters.ts';
import { validateWorkflow } from '../../app/compile.ts';
import { InvalidWorkflow } from '../../app/errors.ts';
import { findProject } from '../../app/project.ts';
import { readSettings } from '../../app/sources.ts';
import { UsageError } from '../../base/errors.ts';
import { type Diagnostic, hasErrors } from '../../base/source.ts';
import { countText, diagnosticJson, renderDiagnostic } from '../../view/diagnostics.ts';
import { EXIT, printLine, printLines, printResult, report } from '../output.ts';
import { paletteFor } from '../terminal.ts';

export async function validate(paths: readonly string[], { json }: { readonly json?: true }): Promise<number> {
  const project = findProject();
  const { config } = readSettings(project);
  const around = { project, config, adapters: new Adapters(project), language: null, adapter: null };
  const diagnostics: Diagnostic[] = [];
  const notes: string[] = [];
  let isMissing = false;
  let isInvalid = false;
  for (const path of paths) {
    try {
      const validated = validateWorkflow({ ...around, reference: path });
      diagnostics.push(...validated.diagnostics);
      notes.push(...(validated.notes ?? []));
    } catch (error) {
      // The other files are still of interest.
      if (error instanceof UsageError) isMissing = true;
      else if (error instanceof InvalidWorkflow) isInvalid = true;
      else throw error;
      report(error);
    }
  }
  const palette = paletteFor(process.stdout);
  if (json) printResult(diagnostics.map(diagnosticJson));
  else {
    printLines(diagnostics.map((diagnostic) => renderDiagnostic(diagnostic, palette)));
    printLines(notes);
    if (diagnostics.length > 0) printLine(countText(diagnostics));
    else if (!isMissing && !isInvalid)
      printLine(paths.length === 1 ? 'no problems' : `no problems in ${paths.length} files`);
  }
  // A missing file matters less than an invalid workflow.
  return hasErrors(diagnostics) || isInvalid ? EXIT.failed : isMissing ? EXIT.usage : EXIT.done;
}
