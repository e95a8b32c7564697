// The inbox: everything that waits for a person with its evidence and what follows from each answer, and what was decided.

import { useEffect, useRef } from 'preact/hooks';
import type { FleetNeed } from '../view/fleet.ts';
import { type DecidedGate, type DecidedGates, type DiffDocument, runDataPath } from '../web/protocol.ts';
import { gateKey, inboxAddress, runAddress } from './addresses.ts';
import { Age } from './age.tsx';
import { now } from './clock.ts';
import { Diff } from './diff.tsx';
import { useDocument } from './document-store.ts';
import { isFound } from './find.ts';
import { fleet, pageTitle } from './fleet-store.ts';
import { ForeignText } from './foreign-text.tsx';
import { GateActions } from './gate-actions.tsx';
import { Consequences } from './gate-consequences.tsx';
import { StatusIcon } from './icons.tsx';
import { amountOf, amountText } from './money.tsx';
import { askingOf, KIND_NAMES, needName } from './need-names.ts';
import { shownNeeds } from './needs.ts';
import { line, moment } from './shown-text.ts';

/** `gate`: the chosen one, as in the address; null: the newest. */
export function InboxPage({ gate }: { readonly gate: string | null }) {
  pageTitle.value = 'Inbox';
  const needs = shownNeeds.value
    .filter(({ gate: id, run, project, prompt, agent }) => isFound([id, run, project, prompt, agent]))
    .toReversed();
  const key = needs.map(keyOf).join('\n');
  const decided = useDocument<DecidedGates>('/data/decided', key);
  const gates = decided.kind === 'loaded' ? decided.document.gates : [];
  const shown = gates.filter(({ gate: id, run, project, prompt, by }) => isFound([id, run, project, prompt, by]));
  const chosen = needs.find((need) => keyOf(need) === gate) ?? needs[0];
  const others = needs.filter((need) => need !== chosen);
  return (
    <main class="inbox">
      <div class="il">
        <h1 class="unseen">Inbox</h1>
        <ul aria-label="What waits for you">
          {needs.map((need) => (
            <Entry key={`${keyOf(need)} ${need.opened_at ?? ''}`} need={need} isChosen={need === chosen} />
          ))}
        </ul>
        <section aria-label="Decided">
          {shown.map((each) => (
            <Decided key={`${keyOf(each)} ${each.decidedAt ?? ''}`} gate={each} />
          ))}
        </section>
      </div>
      <div class="gates">
        {chosen === undefined ? (
          <p class="quiet dim">{fleet.value === null ? '' : 'Nothing needs you.'}</p>
        ) : (
          <Asked key={`${keyOf(chosen)} ${chosen.opened_at ?? ''}`} need={chosen} isChosen wasNamed={gate !== null} />
        )}
        {others.map((need) => (
          <Asked key={`${keyOf(need)} ${need.opened_at ?? ''}`} need={need} isChosen={false} wasNamed={false} />
        ))}
      </div>
    </main>
  );
}

function keyOf({ project, run, gate }: Pick<FleetNeed, 'project' | 'run' | 'gate'>): string {
  return gateKey({ project, run }, gate);
}

function Entry({ need, isChosen }: { readonly need: FleetNeed; readonly isChosen: boolean }) {
  const { kind, run, agent, prompt, gate, opened_at } = need;
  return (
    <li aria-current={isChosen ? 'true' : undefined}>
      <div class="l">
        <StatusIcon status="open" label="" />
        <b class="you-text">{KIND_NAMES[kind]}</b>
        <span class="cut">
          {line(run, 60)}
          {agent !== null && ` · ${line(agent, 40)}`}
        </span>
        <span class="num">
          <Age since={opened_at} />
        </span>
      </div>
      <a class="cut" href={inboxAddress(keyOf(need))}>
        {line(firstLine(kind, prompt) || `Approve ${gate}?`, 120)}
      </a>
    </li>
  );
}

/** The question of a dialog is at the end of the screen. */
function firstLine(kind: FleetNeed['kind'], prompt: string | null): string {
  const lines = (prompt ?? '').trim().slice(-4000).split('\n');
  return (kind === 'dialog' ? lines.at(-1) : (prompt ?? '').trim().split('\n', 1)[0]) ?? '';
}

function Decided({ gate }: { readonly gate: DecidedGate }) {
  const { project, run, gate: id, kind, status, prompt, decidedAt, by, via, answer, notes } = gate;
  const said = answer ?? notes ?? '';
  const at = decidedAt === null ? '' : moment(Date.parse(decidedAt), now.peek());
  const who = by === null ? '' : ` by ${line(by, 60)}`;
  return (
    <article
      class="done"
      aria-label={`${needName({ kind, gate: id, run })}, ${status}${who}`}
      data-status={status}
      data-item
      tabIndex={-1}
    >
      <div class="l">
        <StatusIcon status={status} label="" />
        <b>{STATUS_NAMES[status]}</b>
        <span class="cut">
          {line(run, 60)}
          {by !== null && ` · ${line(by, 60)}`}
          {via !== null && ` via ${line(via, 20)}`}
        </span>
        <span class="num">{at}</span>
      </div>
      <a class="cut" href={runAddress({ project, run }, 'gates')}>
        {line(firstLine(kind, prompt) || id, 120)}
      </a>
      {said !== '' && <div class="dim cut">“{line(said, 120)}”</div>}
    </article>
  );
}

const STATUS_NAMES: Readonly<Record<DecidedGate['status'], string>> = {
  approved: 'Approved',
  rejected: 'Rejected',
  answered: 'Answered',
  expired: 'Expired',
};

interface AskedProps {
  readonly need: FleetNeed;
  readonly isChosen: boolean;
  /** By the address. */
  readonly wasNamed: boolean;
}

function Asked({ need, isChosen, wasNamed }: AskedProps) {
  const { project, run, gate, kind, prompt, agent, step, opened_at, consequences, approvers, interrupted } = need;
  const of = { project, run };
  const article = useRef<HTMLElement>(null);
  const notes = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (wasNamed) article.current?.focus();
  }, [wasNamed, keyOf(need)]);
  return (
    <article ref={article} class="gate" aria-label={needName(need)} data-status="open" data-item tabIndex={-1}>
      <div class="dim where">
        <span class="pill you">
          <StatusIcon status="open" label="" />
          waits for you · <Age since={opened_at} />
        </span>
        <a href={runAddress(of, 'timeline', { step })}>{line(run)}</a> <span class="faint">/</span>{' '}
        <span class="m">{line(agent ?? gate, 120)}</span>
        {agent !== null && <a href={runAddress(of, 'agents', { agent })}>Terminal</a>}
      </div>
      {kind === 'dialog' ? (
        <pre class="screen" tabIndex={0} aria-label="What the agent shows">
          <ForeignText of={(prompt ?? '').slice(-20_000)} />
        </pre>
      ) : (
        <h2>
          <ForeignText of={prompt ?? `Approve ${gate}?`} />
        </h2>
      )}
      <div class="card decide">
        {kind === 'gate' && <textarea ref={notes} aria-label="Note" placeholder="A note for the run, if you like…" />}
        <GateActions asking={askingOf(need)} kind={kind} notes={notes} />
      </div>
      {interrupted && (
        <p class="dim">Run {line(run)} has no engine: what you decide takes effect when it is resumed.</p>
      )}
      {approvers !== null && <p class="dim">Only {line(approvers.join(', '))} may decide.</p>}
      {consequences !== null && <Consequences of={of} kind={kind} consequences={consequences} brief={false} />}
      <Evidence need={need} />
      {isChosen && <RunDiff need={need} />}
    </article>
  );
}

function Evidence({ need }: { readonly need: FleetNeed }) {
  const run = fleet.value?.runs.find(({ project, id }) => project === need.project && id === need.run);
  if (run === undefined) return null;
  const { cost, counts } = run;
  const spent = cost && amountText(amountOf(cost));
  return (
    <div class="dim evidence">
      {counts !== null && (
        <span>
          <StatusIcon status="done" label="" /> {counts.done} {counts.done === 1 ? 'step' : 'steps'} done
          {counts.failed > 0 && <span class="bad-text">, {counts.failed} failed</span>}
        </span>
      )}
      {spent !== null && spent !== '—' && <span>spent {spent}</span>}
      {run.source !== null && <span>{line(run.source)}</span>}
    </div>
  );
}

function RunDiff({ need: { project, run, opened_at } }: { readonly need: FleetNeed }) {
  const diff = useDocument<DiffDocument>(runDataPath({ project, run }, 'diff'), opened_at);
  if (diff.kind !== 'loaded' || diff.document.text === null) return null;
  return (
    <section aria-label="Diff" class="diffs">
      <Diff text={diff.document.text} />
      {diff.document.truncated && <p class="dim">The rest of the diff is left out.</p>}
    </section>
  );
}
