// `meow trace`: what happened, in order, from the journal.

import type { JournalRecord } from '../../app/observer.ts';
import { Timeline, decisionJson } from '../../view/timeline.ts';
import { renderTimelineLine } from '../../view/timeline-lines.ts';
import { paletteFor } from '../terminal.ts';
import { EXIT } from '../exit.ts';
import { follow } from '../../app/follow.ts';
import { findProject } from '../../app/project.ts';
import { readRun, resolveRun, storeOf } from '../../app/runs.ts';
import { isOutputClosed, printLine, printJson } from '../output.ts';

export interface TraceOptions {
  readonly follow?: true;
  readonly json?: true;
}

const ID_WIDTH_MAX = 24;

export async function trace(wanted: string, options: TraceOptions): Promise<number> {
  const store = storeOf(findProject());
  const id = await resolveRun(store, wanted);
  const tell = options.json ? jsonTeller(id) : lineTeller();
  if (!options.follow) {
    tell((await readRun(store, id)).records);
    return EXIT.done;
  }
  await follow(
    store,
    id,
    (run, fresh) => {
      tell(fresh);
      return run.state.phase !== 'ended';
    },
    isOutputClosed,
  );
  return EXIT.done;
}

type Teller = (records: readonly JournalRecord[]) => void;

function jsonTeller(id: string): Teller {
  return (records) => {
    for (const record of records) for (const object of decisionJson(record, id)) printJson(object);
  };
}

function lineTeller(): Teller {
  const timeline = new Timeline();
  const paint = paletteFor(process.stdout);
  let idWidth = 0;
  return (records) => {
    const lines = records.flatMap((record) => timeline.lines(record));
    for (const { step } of lines) idWidth = Math.max(idWidth, Math.min(step?.length ?? 0, ID_WIDTH_MAX));
    for (const line of lines) printLine(renderTimelineLine(line, { kind: 'moment' }, idWidth, paint));
  };
}
