// What a test of the page needs: a project, the server of `meow ui` in it, and a browser with one profile. The tests of a file
// share it, so that each costs only its own runs.
//
//   const stage = await Stage.open(); const page = await stage.tab('/inbox');

import type { BrowserContext, Page } from 'playwright-core';

import { Browser } from './browser.ts';
import { Rig } from './rig.ts';
import { Ui } from './ui.ts';

export class Stage implements AsyncDisposable {
  readonly rig: Rig;
  readonly browser: Browser;
  readonly profile: BrowserContext;
  /** Replaced by `restart`. */
  ui: Ui;
  /** What went wrong in the pages: exceptions that nothing caught, violations of the policy, and requests to elsewhere. */
  readonly mistakes: string[] = [];

  /** `flags`: of `meow ui`. */
  static async open(...flags: readonly string[]): Promise<Stage> {
    const rig = await Rig.setup();
    const [ui, browser] = await Promise.all([Ui.start(rig, '--project', '.', ...flags), Browser.start()]);
    return new Stage(rig, ui, browser, await browser.profile());
  }

  private constructor(rig: Rig, ui: Ui, browser: Browser, profile: BrowserContext) {
    this.rig = rig;
    this.ui = ui;
    this.browser = browser;
    this.profile = profile;
    this.watch(profile);
  }

  /** Notes mistakes of all pages in the profile. */
  watch(profile: BrowserContext): void {
    profile.on('weberror', (error) => this.mistakes.push(String(error.error())));
    profile.on('console', (message) => {
      // Pages of others may try what they like.
      const isOurs = message.page()?.url().startsWith(this.ui.origin) === true;
      if (isOurs && /Content Security Policy|Trusted/.test(message.text())) this.mistakes.push(message.text());
    });
    profile.on('request', (request) => {
      const url = new URL(request.url());
      if (url.hostname !== '127.0.0.1' && !['data:', 'blob:'].includes(url.protocol))
        this.mistakes.push(`request to ${request.url()}`);
    });
  }

  /** A tab that has this address open and is connected. The first one of a profile exchanges the token. */
  async tab(address: string, profile = this.profile): Promise<Page> {
    const page = await profile.newPage();
    await this.goTo(page, address);
    return page;
  }

  async goTo(page: Page, address: string): Promise<void> {
    await page.goto(`${this.ui.origin}${address}#token=${this.ui.token}`);
    await isLive(page);
  }

  /** Starts the server again on the same port: it has a new token. */
  async restart(): Promise<void> {
    const { port } = this.ui;
    await this.ui[Symbol.asyncDispose]();
    this.ui = await Ui.start(this.rig, '--port', String(port), '--project', '.');
  }

  /** Fails if anything went wrong in a page. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.browser[Symbol.asyncDispose]();
    await this.ui[Symbol.asyncDispose]();
    await this.rig[Symbol.asyncDispose]();
    if (this.mistakes.length > 0) throw new Error(`mistakes in pages:\n${this.mistakes.join('\n')}`);
  }
}

export async function isLive(page: Page): Promise<void> {
  await page.getByRole('status', { name: 'Connection' }).getByText('live', { exact: true }).waitFor();
}
