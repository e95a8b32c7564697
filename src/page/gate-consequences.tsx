// What follows from each answer to a gate, in words, with links to the steps.

import type { Consequence, GateConsequences } from '../view/consequences.ts';
import type { RunName } from '../web/protocol.ts';
import { runAddress } from './addresses.ts';
import { exported } from './exported.ts';
import { line, numeral } from './shown-text.ts';

export function Consequences({
  of,
  kind,
  consequences: { approve, reject },
  brief,
}: {
  readonly of: RunName;
  readonly kind: 'gate' | 'dialog' | 'question';
  readonly consequences: GateConsequences;
  readonly brief: boolean;
}) {
  const [yes, no] = NAMES[kind];
  return (
    <div class={brief ? 'follow brief' : 'follow'}>
      <div class={brief ? '' : 'card'}>
        <small>{yes}</small>
        <Sentences of={of} list={approve} />
      </div>
      {kind !== 'question' && (
        <div class={brief ? '' : 'card'}>
          <small>{no}</small>
          <Sentences of={of} list={reject} />
        </div>
      )}
    </div>
  );
}

const NAMES = {
  gate: ['If you approve', 'If you reject'],
  dialog: ['If you allow it', 'If you deny it'],
  question: ['When you answer', ''],
} as const;

function Sentences({ of, list }: { readonly of: RunName; readonly list: readonly Consequence[] }) {
  if (list.length === 0) return <span>nothing follows at once</span>;
  return (
    <ul>
      {list.map((each, index) => (
        <li key={index}>
          <Sentence of={of} each={each} />
        </li>
      ))}
    </ul>
  );
}

function Sentence({ of, each }: { readonly of: RunName; readonly each: Consequence }) {
  switch (each.kind) {
    case 'runs':
      return (
        <>
          <Steps of={of} {...each} /> {each.count === 1 ? 'runs' : 'run'}
        </>
      );
    case 'skips':
      return (
        <>
          <Steps of={of} {...each} /> {each.count === 1 ? 'is' : 'are'} skipped
        </>
      );
    case 'continues':
      return (
        <>
          {each.agent === null ? (
            <Steps of={of} steps={[each.step]} count={1} />
          ) : (
            <span class="m">{line(each.agent)}</span>
          )}{' '}
          {each.allowed ? 'may do it, and continues' : 'is refused, and continues'}
        </>
      );
    case 'retries':
      return (
        <>
          <Steps of={of} steps={[each.step]} count={1} /> is tried again
        </>
      );
    case 'fails':
      return (
        <>
          <Steps of={of} steps={[each.step]} count={1} /> fails{each.handled ? ', and the run goes on' : ''}
        </>
      );
    case 'ends':
      return (
        <>
          the run ends <b>{each.verdict}</b>
          {each.reason !== null && `: ${line(each.reason)}`}
        </>
      );
  }
}

const NAMED_MAX = 3;

function Steps({
  of,
  steps,
  count,
}: {
  readonly of: RunName;
  readonly steps: readonly string[];
  readonly count: number;
}) {
  const named = steps.slice(0, NAMED_MAX);
  return (
    <>
      {named.map((step, index) => (
        <span key={step}>
          {index > 0 && ', '}
          {exported === null ? (
            <a class="m" href={runAddress(of, 'timeline', { step })}>
              {line(step)}
            </a>
          ) : (
            <span class="m">{line(step)}</span>
          )}
        </span>
      ))}
      {count > named.length && ` and ${numeral(count - named.length)} more`}
    </>
  );
}
