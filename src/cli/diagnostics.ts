// Prints problems of sources, for commands other than validate.

import type { Diagnostic } from '../base/diagnostic.ts';
import { countText, renderDiagnostic } from '../view/diagnostics.ts';
import type { Palette } from '../view/palette.ts';
import { warn } from './output.ts';

/** Prints all of them on stderr, and their number. */
export function printDiagnostics(diagnostics: readonly Diagnostic[], palette: Palette): void {
  for (const diagnostic of diagnostics) warn(renderDiagnostic(diagnostic, palette));
  if (diagnostics.length > 0) warn(countText(diagnostics));
}
