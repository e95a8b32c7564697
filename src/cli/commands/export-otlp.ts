// `meow export --otlp RUN`: sends the trace of a run to a receiver.

import { findProject } from '../../app/project.ts';
import { exportTrace } from '../../app/telemetry/export-run.ts';
import { sanitize } from '../../base/sanitize.ts';
import { EXIT, printJson, printLine, warn } from '../output.ts';

export async function exportOtlp(run: string, { json }: { readonly json?: true }): Promise<number> {
  const exported = await exportTrace(findProject(), run);
  if (!exported.ok) {
    warn(`meow: the trace was not accepted: ${sanitize(exported.error)}`);
    return EXIT.failed;
  }
  const { run: id, traceId, spans, url } = exported.value;
  if (json) printJson({ run: id, trace_id: traceId, spans, url });
  else printLine(sanitize(`sent ${spans} spans of run ${id} to ${url} (trace ${traceId})`));
  return EXIT.done;
}
