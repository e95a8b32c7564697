// The terminal of an agent, in a sandboxed frame: it has an origin of its own, and speaks only with the page that made it,
// through one port.
//
//   terminal-frame/1  Whatever is printed changes only this frame: titles, clipboard and links are ignored.
//   terminal-frame/2  No query of a program is answered: tmux answers those that it knows, and a second answer would be typed.
//   terminal-frame/3  Without the page's word nothing that a person presses leaves the frame.

import { Terminal } from '@xterm/xterm';
import type { FrameMessage, FrameReport } from './terminal-messages.ts';

const FONT_MAX = 14;
const FONT_MIN = 6;
const SCROLLBACK = 5_000;

const THEME = {
  background: '#14151a',
  foreground: '#d7d4ce',
  cursor: '#d7d4ce',
  cursorAccent: '#14151a',
  black: '#14151a',
  brightBlack: '#85868d',
  red: '#f29a92',
  brightRed: '#ffb3ab',
  green: '#7fd29b',
  brightGreen: '#a2e6b8',
  yellow: '#e8a06a',
  brightYellow: '#f4c08f',
  blue: '#8db8ff',
  brightBlue: '#b1cfff',
  magenta: '#bfa3ff',
  brightMagenta: '#d6c4ff',
  cyan: '#7fd0d2',
  brightCyan: '#a6e4e6',
  white: '#d7d4ce',
  brightWhite: '#ffffff',
};

addEventListener('message', ({ source, data, ports: [port] }: MessageEvent) => {
  if (source === parent && data === 'port' && port !== undefined && terminal === null) show(port);
});

let terminal: Terminal | null = null;

function show(port: MessagePort): void {
  const shown = new Terminal({
    cols: 80,
    rows: 24,
    disableStdin: true,
    scrollback: SCROLLBACK,
    fontFamily: '"JetBrains Mono", ui-monospace, "SF Mono", "Cascadia Mono", Menlo, monospace',
    fontSize: FONT_MAX,
    theme: THEME,
    cursorInactiveStyle: 'outline',
    linkHandler: { activate: () => undefined, allowNonHttpProtocols: false },
  });
  terminal = shown;
  ignoreQueries(shown);
  const place = document.querySelector<HTMLElement>('#terminal') ?? document.body;
  shown.open(place);
  const say = (report: FrameReport): void => port.postMessage(report);
  shown.onData((keys) => say({ kind: 'keys', bytes: new TextEncoder().encode(keys) }));
  shown.onBinary((keys) => say({ kind: 'keys', bytes: Uint8Array.from(keys, (each) => each.charCodeAt(0)) }));
  shown.attachCustomKeyEventHandler((event) => {
    if (event.key !== 'Escape' || !event.shiftKey) return true;
    if (event.type === 'keydown') say({ kind: 'leave' });
    return false;
  });
  addEventListener('focus', () => shown.focus());
  const fit = (): void => fitFont(shown, place);
  new ResizeObserver(fit).observe(place);
  port.addEventListener('message', ({ data }: MessageEvent<FrameMessage>) => {
    switch (data.kind) {
      case 'output':
        if (shown.cols !== data.columns || shown.rows !== data.rows) {
          shown.resize(data.columns, data.rows);
          fit();
        }
        shown.write(data.bytes);
        break;
      case 'types':
        shown.options.disableStdin = !data.types;
        shown.options.cursorBlink = data.types;
        if (data.types) shown.focus();
        else shown.blur();
        break;
      case 'reset':
        shown.reset();
        break;
    }
  });
  port.start();
  say({ kind: 'ready' });
}

/** The whole width of the pane can be seen, unless it would not be legible. */
function fitFont(shown: Terminal, place: HTMLElement): void {
  const style = getComputedStyle(place);
  const room = place.clientWidth - Number.parseFloat(style.paddingLeft) - Number.parseFloat(style.paddingRight);
  const measure = document.createElement('canvas').getContext('2d');
  if (measure === null || room <= 0) return;
  measure.font = `${FONT_MAX}px ${shown.options.fontFamily ?? 'monospace'}`;
  const widthAtMax = measure.measureText('W').width * shown.cols;
  const size = Math.floor((2 * FONT_MAX * room) / widthAtMax) / 2;
  shown.options.fontSize = Math.min(FONT_MAX, Math.max(FONT_MIN, size));
}

/** See terminal-frame/2. What a handler accepts is not given to the terminal. */
function ignoreQueries({ parser }: Terminal): void {
  const accept = (): boolean => true;
  for (const prefix of ['', '>', '=', '?']) {
    const of = prefix === '' ? {} : { prefix };
    // Device attributes, status and cursor position, terminal parameters, size of the window, modes.
    for (const final of ['c', 'n', 'x', 't', 'u']) {
      const restoresCursor = final === 'u' && prefix === '';
      if (!restoresCursor) parser.registerCsiHandler({ ...of, final }, accept);
    }
    parser.registerCsiHandler({ ...of, intermediates: '$', final: 'p' }, accept);
  }
  parser.registerCsiHandler({ prefix: '>', final: 'q' }, accept);
  // Whether it has the focus.
  for (const final of ['h', 'l'])
    parser.registerCsiHandler({ prefix: '?', final }, (modes) => modes.length === 1 && modes[0] === 1004);
  parser.registerDcsHandler({ intermediates: '$', final: 'q' }, accept);
  parser.registerDcsHandler({ intermediates: '+', final: 'q' }, accept);
  parser.registerEscHandler({ final: 'Z' }, accept);
  // Title, icon, colours (which can be queried), clipboard, working directory, notifications.
  for (const command of [
    0, 1, 2, 4, 5, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 52, 104, 110, 111, 112, 777, 1337,
  ])
    parser.registerOscHandler(command, accept);
}
