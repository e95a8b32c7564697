// The records of the journal that concern a step: what was decided, and, on demand, the input that caused it.

import { useState } from 'preact/hooks';
import type { Decision, JournalRecord } from '../../kernel/decision.ts';
import type { StepState } from '../../kernel/state.ts';
import { type PageRecord, runDataPath } from '../../web/protocol.ts';
import { exported } from '../exported.ts';
import { select } from '../router.ts';
import { numeral } from '../shown-text.ts';
import { LoadedPart } from './loaded-part.tsx';
import { LongText } from './long-text.tsx';
import { useRunShown } from './run-shown.ts';
import { useDocument } from './use-document.ts';
import { useFold } from './use-fold.ts';

const LISTED_MAX = 200;

export function RecordTab({ step }: { readonly step: StepState }) {
  const { records, seq } = useRunShown();
  const concerned = useFold(records, () => new RecordsByStep());
  const all = concerned.of(step.id).filter((record) => record.seq <= seq);
  const [open, setOpen] = useState<number | null>(null);
  const shown = open ?? all.at(-1)?.seq ?? null;
  return (
    <div class="scroll details">
      {all.length > LISTED_MAX && (
        <p class="dim">
          The last {LISTED_MAX} of {numeral(all.length)} records.
        </p>
      )}
      <ul class="records">
        {all.slice(-LISTED_MAX).map((record) => (
          <li key={record.seq}>
            <button type="button" class="chip" aria-expanded={record.seq === shown} onClick={() => setOpen(record.seq)}>
              {numeral(record.seq)}
            </button>{' '}
            <span class="m">{kindsOf(record, step.id).join(', ')}</span>{' '}
            <span class="faint num">{new Date(record.at).toLocaleTimeString('en-GB')}</span>
          </li>
        ))}
      </ul>
      {shown !== null && <Shown seq={shown} record={records[shown - 1]} />}
    </div>
  );
}

function Shown({ seq, record }: { readonly seq: number; readonly record: PageRecord | undefined }) {
  const { of, lastSeq } = useRunShown();
  return (
    <section>
      <h3>
        Record {numeral(seq)}{' '}
        <button type="button" class="b s quiet" onClick={() => select({ at: seq === lastSeq ? null : seq })}>
          show the run at this record
        </button>
      </h3>
      {exported === null ? (
        <Whole path={runDataPath(of, 'record', { seq })} />
      ) : (
        <LongText text={JSON.stringify(record, null, 2)} label={`Record ${seq}`} />
      )}
    </section>
  );
}

function Whole({ path }: { readonly path: string }) {
  const loaded = useDocument<JournalRecord>(path);
  return (
    <LoadedPart loaded={loaded}>
      {(record) => <LongText text={JSON.stringify(record, null, 2)} label="Record" />}
    </LoadedPart>
  );
}

class RecordsByStep {
  readonly #byStep = new Map<string, PageRecord[]>();

  note(record: PageRecord): void {
    for (const id of new Set(record.decisions.flatMap(stepsIn))) {
      const list = this.#byStep.get(id);
      if (list === undefined) this.#byStep.set(id, [record]);
      else list.push(record);
    }
  }

  of(step: string): readonly PageRecord[] {
    return this.#byStep.get(step) ?? [];
  }
}

function kindsOf({ decisions }: PageRecord, step: string): readonly string[] {
  return [...new Set(decisions.filter((decision) => stepsIn(decision).includes(step)).map(({ kind }) => kind))];
}

function stepsIn(decision: Decision): readonly string[] {
  if ('steps' in decision) return decision.steps;
  return 'step' in decision ? [decision.step] : [];
}
