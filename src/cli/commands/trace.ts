// `meow trace`: what happened, in order, from the journal.

import { chosenStore, type StoreChoice } from '../../app/choose-store.ts';
import { follow, type FollowedRun } from '../../app/follow.ts';
import type { JournalRecord } from '../../app/observer.ts';
import { readRun, resolveRun } from '../../app/runs.ts';
import { decisionJson, renderTimelineLine, Timeline } from '../../view/timeline.ts';
import type { Switches } from '../flags.ts';
import { EXIT, isOutputClosed, printJson, printLine } from '../output.ts';
import { paletteFor } from '../terminal.ts';

const ID_WIDTH_MAX = 24;

export async function trace(wanted: string, options: Switches<'follow' | 'json'> & StoreChoice): Promise<number> {
  const store = await chosenStore(options);
  const id = await resolveRun(store, wanted);
  const print = options.json ? jsonPrinter(id) : linePrinter();
  if (!options.follow) {
    print((await readRun(store, id)).records);
    return EXIT.done;
  }
  const show = ({ state }: FollowedRun, fresh: readonly JournalRecord[]): boolean => {
    print(fresh);
    return state.phase !== 'ended';
  };
  await follow(store, id, show, isOutputClosed);
  return EXIT.done;
}

type Printer = (records: readonly JournalRecord[]) => void;

function jsonPrinter(id: string): Printer {
  return (records) => {
    for (const record of records) for (const object of decisionJson(record, id)) printJson(object);
  };
}

function linePrinter(): Printer {
  const timeline = new Timeline();
  const paint = paletteFor(process.stdout);
  let idWidth = 0;
  return (records) => {
    const lines = records.flatMap((record) => timeline.lines(record));
    for (const { step } of lines) idWidth = Math.max(idWidth, Math.min(step?.length ?? 0, ID_WIDTH_MAX));
    for (const line of lines) printLine(renderTimelineLine(line, { kind: 'moment' }, idWidth, paint));
  };
}
