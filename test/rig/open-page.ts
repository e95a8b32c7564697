// A page of `meow ui` in a tab of its own, as somebody sees it who has opened the printed address before.

import type { Page } from 'playwright-core';

import type { Browser } from './browser.ts';
import type { Ui } from './ui.ts';

/** `path`: with its query. */
export async function openPage(ui: Ui, browser: Browser, path: string): Promise<Page> {
  const page = await browser.page();
  await page.goto(ui.url);
  await page.getByRole('status', { name: 'Connection' }).getByText('live').waitFor();
  await page.goto(`${ui.origin}${path}`);
  return page;
}
