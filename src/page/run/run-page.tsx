// The page of a run: what it is and does, its steps in several views, the chosen step, and the slider over its records.

import { useEffect } from 'preact/hooks';
import { Spans } from '../../view/spans.ts';
import { RUN_VIEWS, type RunName, type RunViewName } from '../../web/protocol.ts';
import { runAddress, type RunSelection } from '../addresses.ts';
import { pageTitle } from '../fleet-store.ts';
import { useKeys } from '../keys.ts';
import { loadLater } from '../load-later.tsx';
import { MessagePage } from '../message-page.tsx';
import { useRun } from '../open-run.ts';
import { navigate, select } from '../router.ts';
import type { RunPicture, RunProblem } from '../run-store.ts';
import { line } from '../shown-text.ts';
import { OpenGates } from './open-gates.tsx';
import { RunHead } from './run-head.tsx';
import { isWithoutEngine, RunContext, type RunShown } from './run-shown.ts';
import { Slider } from './slider.tsx';
import { StepDrawer } from './step-drawer.tsx';
import { TimelineView } from './timeline-view.tsx';
import { useFold } from './use-fold.ts';
import { ViewTabs } from './view-tabs.tsx';

const AgentPage = loadLater('part', async () => (await import('./views.ts')).AgentPage);
const AgentsView = loadLater('part', async () => (await import('./views.ts')).AgentsView);
const CostView = loadLater('part', async () => (await import('./views.ts')).CostView);
const GatesView = loadLater('part', async () => (await import('./views.ts')).GatesView);
const GraphView = loadLater('part', async () => (await import('./views.ts')).GraphView);
const StoryView = loadLater('part', async () => (await import('./views.ts')).StoryView);

export interface RunPageProps {
  readonly of: RunName;
  readonly view: RunViewName;
  readonly selection: RunSelection;
}

export function RunPage({ of, view, selection }: RunPageProps) {
  const store = useRun(of);
  useEffect(() => store.show(selection.at), [store, selection.at]);
  useEffect(() => {
    pageTitle.value = line(of.run);
    return () => void (pageTitle.value = null);
  }, [of.run]);
  const picture = store.picture.value;
  const problem = store.problem.value;
  if (picture === null)
    return problem === null ? <main class="runpage" aria-busy="true" /> : <Problem problem={problem} />;
  return <LoadedRun of={of} view={view} selection={selection} picture={picture} problem={problem} />;
}

/** What was folded of a run that is lost stays on the page, below the reason. */
function LoadedRun({ of, view, selection, picture, problem }: RunPageProps & LoadedProps) {
  const spans = useFold(picture.records, () => new Spans());
  const shown: RunShown = { ...picture, of, selection, spans, interrupted: isWithoutEngine(picture) };
  /** Of the step that is shown, if there is one. */
  const change = (changes: Partial<RunSelection>): boolean => {
    if (selection.step === null) return false;
    select(changes);
    return true;
  };
  useKeys('Run', [
    ...RUN_VIEWS.map((name, index) => ({
      key: String(index + 1),
      label: name,
      press: () => navigate(runAddress(of, name, selection)),
    })),
    {
      key: 'Escape',
      label: 'close the step',
      press: () => change({ step: null, tab: null }),
    },
    { key: 'l', label: 'output of the step', press: () => change({ tab: 'output' }) },
    { key: 'w', label: 'why it has its status', press: () => change({ tab: 'why' }) },
    {
      key: 't',
      label: 'terminal of its agent',
      press: () => {
        const agent = shown.state.steps.get(selection.step ?? '')?.agent ?? null;
        if (agent === null) return false;
        navigate(runAddress(of, 'agents', { ...selection, agent }));
        return true;
      },
    },
  ]);
  if (view === 'agents' && selection.agent !== null) {
    return (
      <RunContext.Provider value={shown}>
        <main class={selection.step === null ? 'agentp' : 'agentp with-drawer'}>
          {problem !== null && <Lost problem={problem} />}
          <AgentPage id={selection.agent} />
          {selection.step !== null && <StepDrawer id={selection.step} />}
        </main>
      </RunContext.Provider>
    );
  }
  return (
    <RunContext.Provider value={shown}>
      <main class={selection.step === null ? 'runpage' : 'runpage with-drawer'}>
        {problem !== null && <Lost problem={problem} />}
        <RunHead />
        <section class="pane" aria-label="Steps of the run">
          <ViewTabs view={view} />
          {view !== 'gates' && <OpenGates />}
          <View name={view} />
        </section>
        <Slider />
        {selection.step !== null && <StepDrawer id={selection.step} />}
      </main>
    </RunContext.Provider>
  );
}

interface LoadedProps {
  readonly picture: RunPicture;
  readonly problem: RunProblem | null;
}

function View({ name }: { readonly name: RunViewName }) {
  switch (name) {
    case 'timeline':
      return <TimelineView />;
    case 'story':
      return <StoryView />;
    case 'gates':
      return <GatesView />;
    case 'cost':
      return <CostView />;
    case 'graph':
      return <GraphView />;
    case 'agents':
      return <AgentsView />;
  }
}

function Problem({ problem: { why, message, cure } }: { readonly problem: RunProblem }) {
  return (
    <MessagePage title={why === 'missing' ? 'There is no such run' : `The run cannot be shown: ${why}`}>
      <p data-status={why}>{line(message)}</p>
      {cure !== null && <p>{line(cure)}</p>}
    </MessagePage>
  );
}

function Lost({ problem: { why, message, cure } }: { readonly problem: RunProblem }) {
  return (
    <div class="gone" role="alert" data-status={why}>
      <b>{why}</b> {line(message)} {cure !== null && line(cure)}
    </div>
  );
}
