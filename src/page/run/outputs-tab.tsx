// The outputs of a step: the values that it returned.

import { useState } from 'preact/hooks';
import type { Json } from '../../base/json.ts';
import type { StepState } from '../../kernel/state.ts';
import { readTextReference, runDataPath } from '../../web/protocol.ts';
import { exported } from '../exported.ts';
import { line, numeral } from '../shown-text.ts';
import { LoadedPart } from './loaded-part.tsx';
import { LongText } from './long-text.tsx';
import { useRunShown } from './run-shown.ts';
import { fetchDocument, fetchText, type Loaded } from './use-document.ts';

export function OutputsTab({ step }: { readonly step: StepState }) {
  const values = Object.entries({ ...step.failure?.outputs, ...step.outputs });
  if (values.length === 0 && step.kept.length === 0 && step.notes === null) {
    return <p class="empty">It has returned no values{step.finishedAt === null ? ' yet' : ''}.</p>;
  }
  return (
    <div class="scroll details">
      {values.map(([name, value]) => (
        <section key={name}>
          <h3>{line(name)}</h3>
          <Value name={name} value={value} step={step} />
        </section>
      ))}
      {step.notes !== null && (
        <section>
          <h3>notes</h3>
          <LongText text={step.notes} label="notes" />
        </section>
      )}
    </div>
  );
}

function Value({ name, value, step }: { readonly name: string; readonly value: Json; readonly step: StepState }) {
  const { of } = useRunShown();
  if (step.kept.includes(name)) {
    const load = (): Promise<Loaded<string>> =>
      fetchDocument<Json>(runDataPath(of, 'stored', { step: step.id, output: name })).then((loaded) =>
        loaded.kind === 'ready' ? { kind: 'ready', value: writtenValue(loaded.value) } : loaded,
      );
    return <Elsewhere name={name} head="stored in a file of the run" load={load} />;
  }
  const reference = typeof value === 'string' ? readTextReference(value) : null;
  if (reference !== null) {
    const { seq, at, bytes, head } = reference;
    const load = (): Promise<Loaded<string>> => fetchText(runDataPath(of, 'text', { seq, at }));
    return <Elsewhere name={name} head={`${head}… (${numeral(bytes)} bytes)`} load={load} />;
  }
  return <LongText text={writtenValue(value)} label={name} />;
}

/** A value that the page does not have yet. */
function Elsewhere({
  name,
  head,
  load,
}: {
  readonly name: string;
  readonly head: string;
  readonly load: () => Promise<Loaded<string>>;
}) {
  const [loaded, setLoaded] = useState<Loaded<string> | null>(null);
  if (loaded !== null) {
    return <LoadedPart loaded={loaded}>{(value) => <LongText text={value} label={name} />}</LoadedPart>;
  }
  const ask = (): void => {
    setLoaded({ kind: 'loading' });
    void load().then(setLoaded);
  };
  return (
    <>
      <LongText text={head} label={name} />
      {exported === null && (
        <button type="button" class="b s" onClick={ask}>
          Show all
        </button>
      )}
    </>
  );
}

function writtenValue(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}
