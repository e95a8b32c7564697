// The output of an attempt. It opens at its end, at the chosen line, or at the first error if the step failed; reads more where
// a person scrolls, follows what is printed, and searches the whole output.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { StepState } from '../../kernel/state.ts';
import type { OutputsDocument, OutputStream, RunName, StreamName } from '../../web/protocol.ts';
import { exported } from '../exported.ts';
import { useKeys } from '../keys.ts';
import { select } from '../router.ts';
import { Refused } from './loaded-part.tsx';
import { OutputLines } from './output-lines.tsx';
import { OutputSearch } from './output-search.tsx';
import { outputSource, type OutputSource } from './output-source.ts';
import { type OutputPart, OutputWindow } from './output-window.ts';
import { useRunShown } from './run-shown.ts';
import type { Loaded } from './use-document.ts';

const FOLLOW_MS = 1000;

export function OutputTab({ step }: { readonly step: StepState }) {
  const { of, selection } = useRunShown();
  const attempt = selection.attempt ?? step.attempt;
  const { project, run } = of;
  const source = useMemo(() => outputSource({ project, run }, step.id, attempt), [project, run, step.id, attempt]);
  const [loaded, setLoaded] = useState<Loaded<OutputsDocument> | null>(null);
  const [chosen, setChosen] = useState<StreamName | null>(null);
  useEffect(() => {
    let isCurrent = true;
    void source.streams().then((answer) => {
      if (isCurrent) setLoaded(answer);
    });
    return () => {
      isCurrent = false;
    };
  }, [source, step.status]);
  if (attempt === 0) return <p class="empty">It has not started.</p>;
  if (loaded === null || loaded.kind === 'loading') return <p class="empty" aria-busy="true" />;
  if (loaded.kind === 'refused') return <Refused refusal={loaded.refusal} />;
  const { streams, ended } = loaded.value;
  const stream = streams.find((each) => each.stream === chosen) ?? firstStream(streams, step.status === 'failed');
  if (stream === undefined) return <p class="empty">{emptyText(ended)}</p>;
  return (
    <Stream
      key={`${step.id} ${attempt} ${stream.stream}`}
      of={of}
      source={source}
      stream={stream}
      streams={streams}
      failed={step.status === 'failed'}
      ended={ended}
      choose={setChosen}
    />
  );
}

function emptyText(ended: boolean): string {
  if (exported !== null && Object.keys(exported.outputs).length === 0)
    return 'This file was saved without outputs: meow ui export --with-outputs adds them.';
  return ended ? 'It has printed nothing.' : 'It has printed nothing yet.';
}

/** Errors are on stderr, if it has any output. */
function firstStream(streams: readonly OutputStream[], failed: boolean): OutputStream | undefined {
  const printed = streams.filter(({ size }) => size > 0);
  const errors = failed ? printed.find(({ stream }) => stream === 'stderr') : undefined;
  return errors ?? printed.find(({ stream }) => stream === 'text') ?? printed[0] ?? streams[0];
}

interface StreamProps {
  readonly of: RunName;
  readonly source: OutputSource;
  readonly stream: OutputStream;
  readonly streams: readonly OutputStream[];
  readonly failed: boolean;
  readonly ended: boolean;
  readonly choose: (stream: StreamName) => void;
}

function Stream({ source, stream, streams, failed, ended, choose }: StreamProps) {
  const { selection } = useRunShown();
  const view = useMemo(
    () => new OutputWindow(source, stream.stream, stream.start),
    [source, stream.stream, stream.start],
  );
  const [part, setPart] = useState<Loaded<OutputPart>>({ kind: 'loading' });
  const [follows, setFollows] = useState(!failed && selection.line === null);
  const [find, setFind] = useState('');
  const container = useRef<HTMLDivElement>(null);
  const wanted = useRef<number | null>(null);
  const goTo = async (offset: number | null, line: number | null): Promise<void> => {
    wanted.current = line;
    setPart(await view.open(offset));
  };
  useEffect(() => {
    void placeAtFirst(source, stream.stream, selection.line, failed).then(({ offset, line }) => goTo(offset, line));
  }, [view]);
  useEffect(() => {
    if (!follows || ended) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) void view.more().then(setPart);
    }, FOLLOW_MS);
    return () => clearInterval(timer);
  }, [view, follows, ended]);
  useLayoutEffect(() => {
    const { current } = container;
    if (current === null || part.kind !== 'ready') return;
    if (wanted.current !== null) {
      current.querySelector(`[data-line="${wanted.current}"]`)?.scrollIntoView({ block: 'center' });
      wanted.current = null;
    } else if (follows) current.scrollTop = current.scrollHeight;
  }, [part]);
  useKeys('Output', [{ key: 'f', label: 'follow the output', press: () => setFollows(!follows) }]);
  if (part.kind === 'refused') return <Refused refusal={part.refusal} />;
  const raw = source.rawAddress(stream.stream);
  return (
    <>
      <div class="tabs outbar">
        <OutputSearch
          source={source}
          stream={stream.stream}
          find={find}
          setFind={setFind}
          show={({ offset, line }) => {
            setFollows(false);
            void goTo(offset, line);
          }}
        />
        {streams.length > 1 && <StreamChoice streams={streams} shown={stream.stream} choose={choose} />}
        {!ended && (
          <button type="button" class="chip" aria-pressed={follows} onClick={() => setFollows(!follows)}>
            follow
          </button>
        )}
        {raw !== null && (
          <a class="chip" href={raw} target="_blank" rel="noopener noreferrer">
            raw
          </a>
        )}
      </div>
      <OutputLines
        container={container}
        part={part.kind === 'ready' ? part.value : null}
        find={find}
        line={selection.line}
        choose={(line) => select({ line })}
        earlier={() => void keepPlace(container.current, async () => setPart(await view.earlier()))}
        more={() => void view.more().then(setPart)}
        atEnd={(isAtEnd) => !isAtEnd && follows && setFollows(false)}
      />
    </>
  );
}

function StreamChoice({
  streams,
  shown,
  choose,
}: {
  readonly streams: readonly OutputStream[];
  readonly shown: StreamName;
  readonly choose: (stream: StreamName) => void;
}) {
  return (
    <div class="seg" role="group" aria-label="Stream">
      {streams.map(({ stream }) => (
        <button key={stream} type="button" aria-pressed={stream === shown} onClick={() => choose(stream)}>
          {stream}
        </button>
      ))}
    </div>
  );
}

async function placeAtFirst(
  source: OutputSource,
  stream: StreamName,
  line: number | null,
  failed: boolean,
): Promise<{ readonly offset: number | null; readonly line: number | null }> {
  if (line === null && !failed) return END;
  const found = await (line === null ? source.firstError(stream) : source.line(stream, line));
  return found.kind === 'ready' && found.value !== null ? found.value : END;
}

const END = { offset: null, line: null };

/** What is seen stays where it is while lines are added above. */
async function keepPlace(container: HTMLElement | null, change: () => Promise<void>): Promise<void> {
  const before = container === null ? 0 : container.scrollHeight - container.scrollTop;
  await change();
  requestAnimationFrame(() => {
    if (container !== null) container.scrollTop = container.scrollHeight - before;
  });
}
