// The page of a run.

import type { RunViewName, RunName } from '../../web/protocol.ts';
import type { RunSelection } from '../addresses.ts';
import { runStatus } from '../../view/status.ts';
import { StatusIcon } from '../icons.tsx';
import { useRun } from '../open-run.ts';
import { line } from '../shown-text.ts';

export interface RunPageProps {
  readonly of: RunName;
  readonly view: RunViewName;
  readonly selection: RunSelection;
}

export function RunPage({ of, selection }: RunPageProps) {
  const store = useRun(of);
  store.show(selection.at);
  const picture = store.picture.value;
  const problem = store.problem.value;
  const status = picture === null ? null : runStatus(picture.state);
  return (
    <main class="runpage">
      <section class="rhead">
        <div class="l1">
          {status !== null && <StatusIcon status={status} />}
          <h1>{line(of.run)}</h1>
          {problem !== null && <span>{problem.message}</span>}
        </div>
      </section>
    </main>
  );
}
