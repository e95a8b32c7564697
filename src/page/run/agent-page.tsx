// One agent: its terminal, which a person can type into, what became of its latest prompt, and what it has cost.
//
//   agent-page/1  A terminal is only watched until the person chooses Type. It is watched again as soon as the agent asks
//                 something that a gate is open for: what was being typed is not an answer.

import { useEffect, useState } from 'preact/hooks';
import { CostEntries, costsBy } from '../../view/cost-entries.ts';
import { Deliveries, type PromptHistory } from '../../view/deliveries.ts';
import { agentsOf, type AgentView, openGates } from '../../view/status.ts';
import { costText } from '../../view/usage.ts';
import { runAddress } from '../addresses.ts';
import { exported } from '../exported.ts';
import { StatusIcon } from '../icons.tsx';
import { useKeys } from '../keys.ts';
import { navigate } from '../router.ts';
import { session as ownSession } from '../session.ts';
import { age, line } from '../shown-text.ts';
import { shownAgentStatus } from './agents-view.tsx';
import { OpenGateCard } from './gate-card.tsx';
import { shownTime, useRunShown } from './run-shown.ts';
import { Terminal } from './terminal.tsx';
import { useFold } from './use-fold.ts';

export function AgentPage({ id }: { readonly id: string }) {
  const run = useRunShown();
  const { of, state, isLive, selection } = run;
  const agent = agentsOf(state).find((each) => each.id === id);
  const [typing, setTyping] = useState<{ readonly intoDialog: boolean } | null>(null);
  const [refused, setRefused] = useState<string | null>(null);
  const dialog = openGates(state).find(
    (gate) => gate.kind === 'dialog' && state.steps.get(gate.step ?? '')?.agent === id,
  );
  const asks = dialog !== undefined;
  const lives = agent !== undefined && agent.status !== 'stopped' && agent.status !== 'gone';
  const canType = exported === null && isLive && lives && ownSession.value?.readOnly !== true;
  const isTyping = typing !== null && canType && (!asks || typing.intoDialog);
  useEffect(() => {
    if (typing !== null && !isTyping) setTyping(null);
  }, [isTyping]);
  const type = (): boolean => {
    if (!canType) return false;
    setRefused(null);
    setTyping({ intoDialog: asks });
    return true;
  };
  useKeys('Agent', [
    { key: 'Enter', label: 'type into its terminal', press: type },
    {
      key: 'Escape',
      label: 'back to all agents',
      press: () => navigate(runAddress(of, 'agents', { ...selection, agent: null })),
    },
  ]);
  // Another start of the agent is another terminal.
  const start = state.agents.get(id)?.generation ?? 0;
  return (
    <>
      <section class="pane" aria-label={`Agent ${line(id)}`}>
        <div class="tbar">
          <AgentName id={id} agent={agent} />
          <span class="grow" />
          {canType && (
            <div class="seg" role="group" aria-label="Terminal">
              <button type="button" aria-pressed={!isTyping} onClick={() => setTyping(null)}>
                Watch
              </button>
              <button type="button" aria-pressed={isTyping} onClick={() => void type()}>
                Type
              </button>
            </div>
          )}
          {exported === null && agent?.terminal !== null && agent !== undefined && (
            <CopyButton text={`meow attach ${of.run} ${id}`} />
          )}
        </div>
        {refused !== null && (
          <p class="refused" role="alert">
            {line(refused)}
          </p>
        )}
        {exported === null ? (
          <Terminal
            key={`${id} ${start}`}
            of={of}
            agent={id}
            types={isTyping}
            intoDialog={typing?.intoDialog ?? false}
            leave={() => setTyping(null)}
            refused={setRefused}
          />
        ) : (
          <p class="empty">A saved file has no terminals.</p>
        )}
      </section>
      <aside class="side2" aria-label="About the agent">
        {dialog !== undefined && <OpenGateCard gate={dialog} brief />}
        <About id={id} agent={agent} />
        {canType && <Typing asks={asks} isTyping={isTyping} />}
      </aside>
    </>
  );
}

interface AgentProps {
  readonly id: string;
  /** Absent: at this record the run has no such agent. */
  readonly agent: AgentView | undefined;
}

function AgentName({ id, agent }: AgentProps) {
  const run = useRunShown();
  const { of, state, selection } = run;
  if (agent === undefined) return <b>{line(id)}</b>;
  const { adapter, current_step: step } = agent;
  const status = shownAgentStatus(state, agent);
  const since = state.steps.get(step ?? '')?.startedAt ?? null;
  return (
    <>
      <span class="l1" data-agent={id} data-status={status}>
        <StatusIcon status={status} />
        <b>{line(id, 80)}</b>
      </span>
      {adapter !== null && <span class="chip">{line(adapter, 30)}</span>}
      <span class="dim cut">
        {step === null ? (
          status
        ) : (
          <>
            {status === 'waiting' ? 'asks you in ' : 'works on '}
            <a class="m" href={runAddress(of, 'timeline', { ...selection, agent: null, step })}>
              {line(step, 80)}
            </a>
            {since !== null && ` · ${age(shownTime(run) - since)}`}
          </>
        )}
      </span>
    </>
  );
}

function CopyButton({ text }: { readonly text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = (): void => {
    void navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      // Without permission the person copies it by hand.
      () => setCopied(false),
    );
  };
  return (
    <button type="button" class="b s hide-s" title={text} onClick={copy}>
      {copied ? 'Copied' : 'Copy attach command'}
    </button>
  );
}

function About({ id, agent }: AgentProps) {
  const { of, state, records, seq, selection } = useRunShown();
  const deliveries = useFold(records, () => new Deliveries());
  const costs = useFold(records, () => new CostEntries());
  const prompt = deliveries.latest(id, seq);
  const own = costs.until(seq).filter((entry) => entry.agent === id);
  const [all] = costsBy(own, () => '');
  const [turn] = costsBy(
    own.filter(({ step, attempt }) => step === prompt?.step && attempt === prompt.attempt),
    () => '',
  );
  if (agent === undefined) return <p class="dim">At this record the run has no agent {line(id)}.</p>;
  const facts = [
    ['Session', agent.session],
    ['Folder', agent.workdir],
    ['Terminal', agent.terminal],
    ['This prompt', turn === undefined ? null : costText(turn.cost)],
    ['This agent', all === undefined ? null : `${costText(all.cost)} · ${all.turns} turns`],
  ] as const;
  return (
    <>
      {prompt !== null && (
        <section aria-label={`Prompt ${prompt.number}`}>
          <h2>
            Prompt {prompt.number}{' '}
            <a class="m" href={runAddress(of, 'agents', { ...selection, step: prompt.step, tab: 'prompt' })}>
              {line(prompt.step, 60)}
            </a>
          </h2>
          <Prompt prompt={prompt} isWorking={state.phase !== 'ended'} />
        </section>
      )}
      <dl class="kv">
        {facts.flatMap(([name, value]) =>
          value === null || value === ''
            ? []
            : [
                <dt key={`${name} name`}>{name}</dt>,
                <dd key={name} class={name.startsWith('This') ? 'num' : 'm'}>
                  {line(value)}
                </dd>,
              ],
        )}
      </dl>
    </>
  );
}

function Prompt({ prompt: { events, isOpen }, isWorking }: { readonly prompt: PromptHistory; isWorking: boolean }) {
  const last = events.at(-1);
  const works = isOpen && isWorking && last?.tone === 'ok' && last.text !== 'journalled';
  return (
    <ul class="steps3">
      {events.map(({ at, text, tone }, index) => (
        <li key={index} class={tone}>
          {line(text, 200)} <small class="num">{timeOf(at)}</small>
        </li>
      ))}
      {works && <li class="run">at work</li>}
    </ul>
  );
}

/** With milliseconds: deliveries are quick. */
function timeOf(at: number): string {
  const date = new Date(at);
  return `${date.toLocaleTimeString('en-GB')}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

function Typing({ asks, isTyping }: { readonly asks: boolean; readonly isTyping: boolean }) {
  return (
    <section aria-label="While you type">
      <h2>While you type</h2>
      <p class="dim">
        {asks && !isTyping
          ? 'The agent asks something. Decide above, or choose Type to answer in the terminal yourself.'
          : 'Your keys go to the terminal as they are. The run waits with its next prompt while you type, and nothing that you type here counts as a decision.'}{' '}
        <kbd>shift</kbd> <kbd>esc</kbd> ends it.
      </p>
    </section>
  );
}
