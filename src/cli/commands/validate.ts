// `meow validate`: every problem of every file.

import type { Diagnostic } from '../../base/diagnostic.ts';
import { hasErrors } from '../../base/diagnostic.ts';
import { UsageError } from '../../base/usage-error.ts';
import { countText, diagnosticJson, renderDiagnostic } from '../../view/diagnostics.ts';
import { Adapters } from '../../app/adapters.ts';
import { paletteFor } from '../terminal.ts';
import { EXIT, report } from '../exit.ts';
import { InvalidWorkflow } from '../../app/errors.ts';
import { findProject } from '../../app/project.ts';
import { printLine } from '../output.ts';
import { readSettings } from '../../app/settings.ts';
import { validateWorkflow } from '../../app/compile.ts';

export async function validate(paths: readonly string[], { json }: { readonly json?: true }): Promise<number> {
  const project = findProject();
  const { config } = readSettings(project);
  const around = { project, config, adapters: new Adapters(project), language: null, adapter: null };
  const diagnostics: Diagnostic[] = [];
  const notes: string[] = [];
  let worst: number = EXIT.done;
  for (const path of paths) {
    try {
      const validated = validateWorkflow({ ...around, reference: path });
      diagnostics.push(...validated.diagnostics);
      notes.push(...(validated.notes ?? []));
    } catch (error) {
      // The other files are still of interest.
      if (!(error instanceof UsageError || error instanceof InvalidWorkflow)) throw error;
      worst = Math.max(worst, report(error));
    }
  }
  const paint = paletteFor(process.stdout);
  if (json) printLine(JSON.stringify(diagnostics.map(diagnosticJson), null, 2));
  else {
    for (const diagnostic of diagnostics) printLine(renderDiagnostic(diagnostic, paint));
    for (const note of notes) printLine(note);
    if (diagnostics.length > 0) printLine(countText(diagnostics));
    else if (worst === EXIT.done)
      printLine(paths.length === 1 ? 'no problems' : `no problems in ${paths.length} files`);
  }
  return hasErrors(diagnostics) ? Math.max(worst, EXIT.failed) : worst;
}
