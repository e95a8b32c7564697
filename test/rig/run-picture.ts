// What the page of a run shows, as data: read from what screen readers and scripts rely on (docs/ui.md). It is compared with
// `meow status --json` and with folds of the journal.

import type { Page } from 'playwright-core';

import { type Rig, until } from './rig.ts';

export interface RunPicture {
  readonly status: string | null;
  readonly counts: Readonly<Record<string, number>> | null;
  /** The record shown, and how many there are. */
  readonly record: number;
  readonly records: number;
  /** Step and status of each row in the document, in order. */
  readonly rows: readonly (readonly [step: string, status: string])[];
  readonly rowCount: number;
  /** Of the head: `$2.41`, `≥ $0.90`; null if nothing was spent. */
  readonly spent: string | null;
}

const READ = `(() => {
  const grid = document.querySelector('[role=treegrid][aria-label=Steps]');
  const slider = document.querySelector('[role=slider][aria-label=Record]');
  const counts = document.querySelector('[data-counts]');
  if (grid === null || slider === null || counts === null) return null;
  const spent = /spent\\s*((?:≥ )?\\$[\\d.,]+)/.exec(counts.textContent);
  return {
    status: document.querySelector('h1 + [data-status]')?.getAttribute('data-status') ?? null,
    counts: JSON.parse(counts.getAttribute('data-counts')),
    record: Number(slider.getAttribute('aria-valuenow')),
    records: Number(slider.getAttribute('aria-valuemax')),
    rows: [...grid.querySelectorAll('[data-step]')].map((row) => [row.dataset.step, row.dataset.status]),
    rowCount: Number(grid.getAttribute('aria-rowcount')),
    spent: spent === null ? null : spent[1],
  };
})()`;

/** Null while the timeline is not shown. */
function readPicture(page: Page): Promise<RunPicture | null> {
  return page.evaluate<RunPicture | null>(READ);
}

/** Waits until the page shows a picture that fits. */
export async function pictureOf(page: Page, fits: (picture: RunPicture) => boolean): Promise<RunPicture> {
  let found: RunPicture | null = null;
  let last: RunPicture | null = null;
  let isAsking = false;
  let failed: Error | null = null;
  const ask = async (): Promise<void> => {
    isAsking = true;
    last = await readPicture(page);
    if (last !== null && fits(last)) found = last;
    isAsking = false;
  };
  try {
    await until(() => {
      if (failed !== null) throw failed;
      if (found === null && !isAsking)
        ask().catch((error: unknown) => {
          failed = error instanceof Error ? error : new Error(String(error));
        });
      return found !== null;
    }, 'the picture');
  } catch (error) {
    const text = (await page.locator('main').innerText()).slice(0, 2_000);
    throw new Error(`the page shows ${JSON.stringify(last)}:\n${text}`, { cause: error });
  }
  return found as unknown as RunPicture;
}

/** Waits until the page agrees with the journal: all records, each step once with its status, and the same counts. */
export async function agreesWithStatus(page: Page, rig: Rig, id: string): Promise<RunPicture> {
  const { steps, counts } = await rig.status(id);
  const records = rig.read(`.meow/workflows/${id}/journal.jsonl`).trimEnd().split('\n').length;
  const wanted = Object.entries(steps).map(([step, { status }]) => `${step} ${shownStatus(status)}`);
  return pictureOf(
    page,
    (picture) =>
      picture.records === records &&
      same(sortedEntries(picture.counts ?? {}), sortedEntries(counts)) &&
      same(picture.rows.map(([step, status]) => `${step} ${shownStatus(status)}`).toSorted(), wanted.toSorted()),
  );
}

/** Page and status give a running step several names: it may wait for a person, or complete. */
export function shownStatus(status: string): string {
  return status === 'waiting' || status === 'completing' ? 'running' : status === 'parked' ? 'pending' : status;
}

export function sortedEntries(of: Readonly<Record<string, number>>): readonly string[] {
  return Object.entries(of)
    .map(([key, value]) => `${key} ${value}`)
    .toSorted();
}

export function same(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
