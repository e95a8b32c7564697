// `meow prove`: everything that can happen to a run of a workflow. Ctrl-C prints what was found so far.

import { Adapters } from '../../app/adapters.ts';
import { findProject } from '../../app/project.ts';
import { proofLines, type ProveFlags, proveWorkflow } from '../../app/prove.ts';
import { readSettings } from '../../app/sources.ts';
import { EXIT, printLine, printLines } from '../output.ts';
import { paletteFor, printDiagnostics } from '../terminal.ts';

/** 128 plus the number of SIGINT, as a shell reports it. */
const INTERRUPTED = 130;

interface ProveOptions extends Omit<ProveFlags, 'reference'> {
  readonly json?: true;
}

export async function prove(reference: string, { json, ...flags }: ProveOptions): Promise<number> {
  const project = findProject();
  let isCancelled = false;
  const cancel = (): void => {
    isCancelled = true;
  };
  // A second one ends the process.
  process.once('SIGINT', cancel);
  const around = [project, readSettings(project), new Adapters(project)] as const;
  const proved = await proveWorkflow(...around, { reference, ...flags }, () => isCancelled);
  process.removeListener('SIGINT', cancel);
  printDiagnostics(proved.diagnostics, paletteFor(process.stderr));
  if (proved.kind === 'refused') return proved.isUsage ? EXIT.usage : EXIT.failed;
  const { proof, bound } = proved;
  if (json) printLine(JSON.stringify(proof));
  else printLines(proofLines(proof, bound, paletteFor(process.stdout)));
  return proof.explored.complete || !isCancelled ? proof.exit : INTERRUPTED;
}
