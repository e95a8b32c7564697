// The screen of `meow top`: the fleet, or one run as a tree, and what the keys do there.
//
//   top/1  Nothing decides a gate but `y` after a question that names it. Any other key cancels.
//   top/2  A gate is shown as decided only when the journal says so, with who decided it.
//   top/3  Rows change below a selected run, never the selected run itself.

import { type Fleet, followFleet } from '../app/fleet.ts';
import { UsageError } from '../base/errors.ts';
import { sanitize, shorten } from '../base/sanitize.ts';
import { crash } from '../sys/errors.ts';
import type { FleetNeed, FleetRun, FleetView } from '../view/fleet.ts';
import { fleetRows } from '../view/fleet-lines.ts';
import { cut, type Palette } from '../view/row.ts';
import type { Key } from './keys.ts';
import { isAscii } from './reporters.ts';
import { Screen, type ScreenSize } from './screen.ts';
import {
  attachTo,
  decide,
  decisionWord,
  openPage,
  pageOutput,
  type PlacedRun,
  recordedVerdict,
  type Verdict,
  whyLines,
} from './top-commands.ts';
import { HELP_LINES, keyLine } from './top-keys.ts';
import { OpenRun } from './top-run.ts';

/** What is asked on the last line but one. */
type Question =
  | { readonly kind: 'confirm'; readonly need: FleetNeed; readonly approved: boolean }
  | { readonly kind: 'answer'; readonly need: FleetNeed; readonly text: string }
  | { readonly kind: 'filter'; readonly text: string };

/** Lines over the fleet or the run: the help, or why a step has its status. */
interface Overlay {
  readonly lines: readonly string[];
  readonly top: number;
}

export class TopScreen {
  readonly #scope: (fleet: Fleet) => string;
  readonly #palette: Palette;
  readonly #screen: Screen;
  readonly #ended = new AbortController();
  #fleet: Fleet | null = null;
  /** As in `keyOf`; null until the person has moved: the first run. */
  #selected: string | null = null;
  #top = 0;
  #filter = '';
  #question: Question | null = null;
  #overlay: Overlay | null = null;
  #message = '';
  #open: OpenRun | null = null;

  constructor(palette: Palette, scope: (fleet: Fleet) => string) {
    this.#palette = palette;
    this.#scope = scope;
    const view = {
      lines: (size: ScreenSize) => this.#lines(size),
      moves: () => this.#moves(),
      pressed: (key: Key) => this.#pressed(key),
    };
    this.#screen = new Screen(view, process.stdin, process.stdout);
  }

  /** Resolves when the person quits. */
  async show(given: readonly string[]): Promise<void> {
    void this.#screen.closed.then(() => this.#ended.abort());
    try {
      for await (const fleet of followFleet(given, this.#ended.signal)) {
        const before = this.#fleet;
        this.#fleet = fleet;
        this.#noteDecisions(before?.view ?? null, fleet.view);
        this.#open?.refresh(fleet.view);
        this.#screen.changed();
      }
    } finally {
      this.#open?.close();
      this.#screen.close();
    }
  }

  // What is shown.

  #lines({ width, height }: ScreenSize): readonly string[] {
    const room = Math.max(1, height - 2);
    const foot = [this.#bottomLine(width), keyLine(width, this.#palette, isAscii())];
    const body = this.#body({ width, height: room });
    return [...body, ...Array.from({ length: room - body.length }, () => ''), ...foot];
  }

  #body(size: ScreenSize): readonly string[] {
    const { lines, top } = this.#overlay ?? { lines: [], top: 0 };
    if (this.#overlay !== null) {
      return lines.slice(top, top + size.height).map((line) => cut(line, size.width));
    }
    return this.#open === null ? this.#fleetLines(size) : this.#open.lines(size, this.#palette);
  }

  #fleetLines({ width, height }: ScreenSize): readonly string[] {
    if (this.#fleet === null) return ['reading runs'];
    const palette = this.#palette;
    const view = this.#view();
    const now = new Date();
    const selected = this.#selectedRun();
    const drawing = { now: now.getTime(), width, palette, ascii: isAscii(), scope: this.#scope(this.#fleet), selected };
    const clock = this.#moves() ? now.toTimeString().slice(0, 8) : null;
    const [head, ...rows] = fleetRows(view, { ...drawing, clock });
    const { remark } = this.#fleet;
    const texts = [
      ...rows.map(({ text }) => text),
      ...(view.runs.length > 0 ? [] : ['', this.#emptyText()]),
      ...(remark === null ? [] : ['', palette.dim(cut(remark, width))]),
    ];
    const room = height - 1;
    const at = rows.findIndex(({ run }) => run !== null && run === selected);
    if (at >= 0) this.#top = Math.max(Math.min(this.#top, at), at - room + 1);
    // What needs a person is above the first run.
    if (selected === view.runs[0] && at < room) this.#top = 0;
    this.#top = Math.max(0, Math.min(this.#top, texts.length - room));
    return [head?.text ?? '', ...texts.slice(this.#top, this.#top + room)];
  }

  #emptyText(): string {
    if (this.#filter !== '') return `No run matches ${JSON.stringify(this.#filter)}.`;
    return 'Nothing has run here yet.  meow run FILE (an example: meow init)';
  }

  #bottomLine(width: number): string {
    const { yellow, dim } = this.#palette;
    const question = this.#question;
    switch (question?.kind) {
      case 'confirm': {
        const { need, approved } = question;
        const what = `${shorten(need.gate)} of ${need.run}: ${sanitize((need.prompt ?? '').trim().split('\n')[0] ?? '')}`;
        const asks = `${decisionWord(need, approved)}? y `;
        return yellow(`${asks} ${cut(what, width - asks.length - 1)}`);
      }
      case 'answer':
        return yellow(cutStart(`answer to ${shorten(question.need.gate)}: ${sanitize(question.text)}_`, width));
      case 'filter':
        return yellow(cutStart(`filter: ${sanitize(question.text)}_`, width));
      case undefined: {
        const filter = this.#filter === '' ? '' : `filter: ${sanitize(this.#filter)}  `;
        return `${dim(cut(filter, width))}${cut(this.#message, width - filter.length)}`;
      }
    }
  }

  #moves(): boolean {
    const view = this.#fleet?.view;
    if (view === undefined || this.#overlay !== null) return false;
    if (this.#open !== null) return this.#open.moves();
    return view.needs.length > 0 || view.runs.some(({ clock_from }) => clock_from !== null);
  }

  #view(): FleetView {
    const view = this.#fleet?.view ?? { runs: [], needs: [], agents: [] };
    const wanted = this.#filter.toLowerCase();
    if (wanted === '') return view;
    const runs = view.runs.filter(({ id, project, source }) =>
      `${project}/${id} ${source ?? ''}`.toLowerCase().includes(wanted),
    );
    const keys = new Set(runs.map(keyOf));
    const isShown = ({ project, run }: { readonly project: string; readonly run: string }): boolean =>
      keys.has(`${project}/${run}`);
    return { runs, needs: view.needs.filter(isShown), agents: view.agents.filter(isShown) };
  }

  #selectedRun(): FleetRun | null {
    const { runs } = this.#view();
    return runs.find((run) => keyOf(run) === this.#selected) ?? runs[0] ?? null;
  }

  #placed(run: FleetRun): PlacedRun | null {
    const project = this.#fleet?.projects.find(({ name }) => name === run.project);
    return project === undefined ? null : { project, id: run.id };
  }

  #say(message: string): void {
    this.#message = sanitize(message.replaceAll('\n', ' '));
    this.#screen.changed();
  }

  // Keys.

  #pressed(key: Key): void {
    if (this.#question !== null) this.#answerQuestion(this.#question, key);
    else if (key.kind !== 'paste') this.#command(key.kind === 'key' ? key.name : key.text);
    this.#screen.changed();
  }

  #command(name: string): void {
    this.#message = '';
    if (name === 'q') return this.#screen.close();
    if (this.#overlay !== null) return this.#inOverlay(this.#overlay, name);
    if (name === '?') {
      this.#overlay = { lines: HELP_LINES, top: 0 };
      return;
    }
    if (name === 'escape') return this.#back();
    if (this.#open === null && this.#moveBy(name)) return;
    if (name === '/' && this.#open === null) this.#question = { kind: 'filter', text: this.#filter };
    else this.#onRun(name);
  }

  #inOverlay({ lines, top }: Overlay, name: string): void {
    const step = { down: 1, j: 1, up: -1, k: -1, pagedown: 10, pageup: -10 }[name];
    this.#overlay = step === undefined ? null : { lines, top: Math.max(0, Math.min(lines.length - 1, top + step)) };
  }

  #back(): void {
    if (this.#open !== null) {
      this.#open.close();
      this.#open = null;
    } else this.#filter = '';
  }

  /** Whether the key moves the selection. */
  #moveBy(name: string): boolean {
    const step = MOVES[name];
    if (step === undefined) return false;
    const { runs } = this.#view();
    const at = runs.findIndex((run) => run === this.#selectedRun());
    const run = runs[Math.max(0, Math.min(runs.length - 1, at + step))];
    if (run !== undefined) this.#selected = keyOf(run);
    return true;
  }

  #onRun(name: string): void {
    const run = this.#open?.run ?? this.#selectedRun();
    const placed = run === null ? null : this.#placed(run);
    if (run === null || placed === null) return;
    switch (name) {
      case 'enter':
        if (this.#open === null) this.#open = new OpenRun(placed, run, () => this.#screen.changed());
        break;
      case 'a':
      case 'x':
        this.#askToDecide(run, name === 'a');
        break;
      case 'l':
        this.#outside(() => pageOutput(placed));
        break;
      case 't': {
        const agents = (this.#fleet?.view.agents ?? []).filter((agent) => isOf(agent, run));
        this.#outside(() => attachTo(placed, agents));
        break;
      }
      case 'o':
        this.#say(openPage(placed, (message) => this.#say(message)));
        break;
      case 'w':
        this.#perform(async () => {
          this.#overlay = { lines: (await whyLines(placed)).map(sanitize), top: 0 };
          this.#screen.changed();
        });
        break;
    }
  }

  #askToDecide(run: FleetRun, approved: boolean): void {
    const need = (this.#fleet?.view.needs ?? []).find((each) => isOf(each, run));
    if (need === undefined) this.#say(`run ${run.id} has no open gate`);
    else if (need.kind === 'question' && approved) this.#question = { kind: 'answer', need, text: '' };
    else this.#question = { kind: 'confirm', need, approved };
  }

  #answerQuestion(question: Question, key: Key): void {
    if (question.kind === 'confirm') {
      this.#question = null;
      const { need, approved } = question;
      if (key.kind === 'character' && key.text === 'y') this.#decide(need, { kind: approved ? 'approve' : 'reject' });
      else this.#say('nothing was decided');
      return;
    }
    const text = edited(question.text, key);
    this.#question = text === null ? null : { ...question, text };
    if (question.kind === 'filter') this.#filter = text ?? (isKey(key, 'enter') ? question.text : '');
    else if (isKey(key, 'enter') && question.text.trim() !== '')
      this.#decide(question.need, { kind: 'answer', text: question.text });
    else if (text === null) this.#say('nothing was sent');
  }

  #decide(need: FleetNeed, verdict: Verdict): void {
    const project = this.#fleet?.projects.find(({ name }) => name === need.project);
    if (project === undefined) return;
    this.#say('sending');
    this.#perform(async () => this.#say(await decide({ project, id: need.run }, need.gate, verdict)));
  }

  /** Says who has decided what no longer waits (top/2). */
  #noteDecisions(before: FleetView | null, now: FleetView): void {
    const open = new Set(now.needs.map(needKey));
    const gone = (before?.needs ?? []).filter((need) => !open.has(needKey(need)) && !need.interrupted);
    for (const need of gone.slice(0, NOTED_MAX)) {
      const project = this.#fleet?.projects.find(({ name }) => name === need.project);
      if (project === undefined) continue;
      this.#perform(async () => {
        const verdict = await recordedVerdict({ project, id: need.run }, need.gate);
        if (verdict !== null) this.#say(`${need.run} ${need.gate}: ${verdict}`);
      });
    }
  }

  /** Another program has the terminal meanwhile. */
  #outside(use: () => Promise<void>): void {
    this.#perform(() => this.#screen.lend(use));
  }

  #perform(work: () => Promise<void>): void {
    work().catch((error: unknown) => {
      if (!(error instanceof UsageError)) return crash(error);
      this.#say(error.hint === null ? error.message : `${error.message} (${error.hint})`);
    });
  }
}

const MOVES: Readonly<Record<string, number>> = {
  down: 1,
  j: 1,
  up: -1,
  k: -1,
  pagedown: 10,
  pageup: -10,
  home: -Infinity,
  g: -Infinity,
  end: Infinity,
  G: Infinity,
};

/** More decisions at once are not told one by one. */
const NOTED_MAX = 3;

/** Null if the edit is over. */
function edited(text: string, key: Key): string | null {
  if (key.kind !== 'key') return text + key.text.replaceAll(/\s+/g, ' ');
  if (key.name === 'enter' || key.name === 'escape') return null;
  if (key.name === 'backspace') return text.replace(/.$/su, '');
  return key.name === 'ctrl-u' ? '' : text;
}

function isKey(key: Key, name: string): boolean {
  return key.kind === 'key' && key.name === name;
}

/** The end of the text, where the person types. */
function cutStart(text: string, width: number): string {
  return text.length <= width ? text : `…${text.slice(text.length - width + 1)}`;
}

function keyOf({ project, id }: FleetRun): string {
  return `${project}/${id}`;
}

function needKey({ project, run, gate }: FleetNeed): string {
  return `${project}/${run}/${gate}`;
}

function isOf(part: { readonly project: string; readonly run: string }, run: FleetRun): boolean {
  return part.project === run.project && part.run === run.id;
}
