// A browser for tests of the page: the system's Chromium, without a window. It has a profile of its own, reaches only this
// machine, and ends with the test.
//
//   await using browser = await Browser.start(); const page = await browser.page(); await page.goto(url);

import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser as Chromium, type BrowserContext, chromium, type Page } from 'playwright-core';

/** Longer than anything takes on a busy machine, and shorter than the timeout of a test. */
const PATIENCE_MS = 60_000;
const NAMES = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome'];

/** The program; null if this machine has none. `npm run setup` installs it. */
function chromiumPath(): string | null {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  const paths = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)));
  return paths.find((path) => existsSync(path)) ?? null;
}

export class Browser implements AsyncDisposable {
  readonly #browser: Chromium;

  /** `args`: more arguments for Chromium. */
  static async start(...args: readonly string[]): Promise<Browser> {
    const executablePath = chromiumPath();
    if (executablePath === null) throw new Error('there is no Chromium on PATH: run `npm run setup` first');
    // The sandbox of Chromium refuses to run as root.
    const chromiumSandbox = process.getuid?.() !== 0;
    return new Browser(
      await chromium.launch({ executablePath, chromiumSandbox, args: ['--disable-dev-shm-usage', ...args] }),
    );
  }

  private constructor(browser: Chromium) {
    this.#browser = browser;
  }

  /** In a profile of its own: without the cookies of other pages. */
  async page(options: Parameters<Chromium['newContext']>[0] = {}): Promise<Page> {
    return (await this.profile(options)).newPage();
  }

  /** For several tabs that share their cookies. */
  async profile(options: Parameters<Chromium['newContext']>[0] = {}): Promise<BrowserContext> {
    const profile = await this.#browser.newContext({ locale: 'en-GB', ...options });
    profile.setDefaultTimeout(PATIENCE_MS);
    return profile;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close();
  }
}
