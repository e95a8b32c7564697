// What runs when, and how the last runs went. `meow serve` starts them.

import type { ScheduleDocument, SchedulesDocument } from '../web/protocol.ts';
import { runAddress } from './addresses.ts';
import { useDocument } from './document-store.ts';
import { isFound } from './find.ts';
import { fleet, pageTitle } from './fleet-store.ts';
import { StatusIcon, statusWord } from './icons.tsx';
import { MessagePage } from './message-page.tsx';
import { NextTime } from './next-time.tsx';
import { line } from './shown-text.ts';

export function SchedulePage() {
  pageTitle.value = 'Schedule';
  // A run that starts or ends may be one of a schedule.
  const runs = (fleet.value?.runs ?? []).map(({ id, status }) => `${id} ${status ?? ''}`).join('\n');
  const listed = useDocument<SchedulesDocument>('/data/schedules', runs);
  if (listed.kind === 'loading') return <main class="cmp" aria-busy="true" />;
  if (listed.kind === 'refused') {
    return (
      <MessagePage title="Schedules cannot be listed">
        <p>{line(listed.refusal.message)}</p>
      </MessagePage>
    );
  }
  const { schedules } = listed.document;
  const shown = schedules.filter(({ project, name, path }) => isFound([project, name, path]));
  return (
    <main class="cmp schedule-page">
      <h1 class="unseen">Schedule</h1>
      {schedules.length === 0 ? (
        <p class="card quiet">
          Nothing is scheduled. <code>meow schedule add nightly "0 3 * * *" nightly.meow.toml</code> adds a schedule,
          and <code>meow serve</code> starts its runs.
        </p>
      ) : (
        <div class="card">
          <table role="table" aria-label="Schedules">
            <thead role="rowgroup">
              <tr role="row">
                {['Schedule', 'Project', 'When', 'Next', 'Last results'].map((title) => (
                  <th key={title} role="columnheader" scope="col">
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody role="rowgroup">
              {shown.map((schedule) => (
                <Row key={`${schedule.project}/${schedule.name}`} of={schedule} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {schedules.length > 0 && shown.length === 0 && <p class="card quiet">No schedule contains this text.</p>}
      {schedules.length > 0 && (
        <p class="dim">
          Runs start while <code>meow serve</code> is running. <code>meow schedule</code> adds, pauses and removes
          schedules.
        </p>
      )}
    </main>
  );
}

function Row({ of }: { readonly of: ScheduleDocument }) {
  const { project, name, cron, timezone, path, paused, next, problem, recent } = of;
  const status = problem !== null ? 'invalid' : paused ? 'paused' : 'valid';
  return (
    <tr role="row" data-item tabIndex={-1} data-status={status} aria-label={`${line(name)}, project ${line(project)}`}>
      <td role="cell" class="c-run">
        <div class="rname">
          <StatusIcon status={problem !== null ? 'invalid' : paused ? 'paused' : 'pending'} label={status} />
          <div>
            <b>{line(name)}</b>
            <small>{line(path ?? '')}</small>
          </div>
        </div>
      </td>
      <td role="cell" class="c-proj">
        <span class="chip">{line(project, 40)}</span>
      </td>
      <td role="cell" class="c-when">
        {cron === null ? (
          <span class="dim">when it is triggered</span>
        ) : (
          <>
            <span class="m">{line(cron, 60)}</span> <small class="dim">{line(timezone ?? '', 40)}</small>
          </>
        )}
        {problem !== null && <div class="bad-text">{line(problem)}</div>}
      </td>
      <td role="cell" class="num c-since">
        {paused ? <span class="dim">paused</span> : <NextTime at={next} />}
      </td>
      <td role="cell" class="c-now">
        {recent.length === 0 && <span class="dim">none yet</span>}
        {recent.map(({ run, status: end }) => (
          <a key={run} class="result" data-status={end} href={runAddress({ project, run })} title={line(run)}>
            <StatusIcon status={end} label={`${line(run)} ${statusWord(end)}`} />
          </a>
        ))}
        {recent[0] !== undefined && (
          <a href={runAddress({ project, run: recent[0].run })}>
            {line(recent[0].run, 60)} {statusWord(recent[0].status)}
          </a>
        )}
      </td>
    </tr>
  );
}
