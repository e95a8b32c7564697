// The frame with the terminal of an agent: passes on what is printed, and, while the person types, their keys.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { KEYS_BYTES_MAX, type RunName, type ServerMessage, TERMINAL_FRAME_PATH } from '../../web/protocol.ts';
import { send, subscribe } from '../connection.ts';
import { line } from '../shown-text.ts';
import type { FrameMessage, FrameReport } from '../terminal-messages.ts';

export interface TerminalProps {
  readonly of: RunName;
  readonly agent: string;
  /** Keys of this frame are the agent's. */
  readonly types: boolean;
  /** The person saw that the agent asks something, and types the answer. */
  readonly intoDialog: boolean;
  readonly leave: () => void;
  /** What went wrong; null if keys arrive again. */
  readonly refused: (message: string | null) => void;
}

/** As much of the past as is worth drawing. */
const PAST_BYTES = 512 * 1024;

export function Terminal({ of: { project, run }, agent, types, intoDialog, leave, refused }: TerminalProps) {
  const frame = useRef<HTMLIFrameElement>(null);
  const [port, setPort] = useState<MessagePort | null>(null);
  const [message, setMessage] = useState<string | null>(null);
  const latest = useRef({ types, intoDialog, leave, refused });
  latest.current = { types, intoDialog, leave, refused };

  const onLoad = (): void => {
    const { port1, port2 } = new MessageChannel();
    port1.addEventListener('message', ({ data }: MessageEvent<FrameReport>) => {
      const { current } = latest;
      if (data.kind === 'ready') setPort(port1);
      else if (data.kind === 'leave') current.leave();
      else if (current.types) sendKeys({ project, run }, agent, data.bytes, current.intoDialog);
    });
    port1.start();
    // It has an origin of its own, which has no name.
    frame.current?.contentWindow?.postMessage('port', '*', [port2]);
  };

  useEffect(() => {
    if (port === null) return undefined;
    let next: number | null = null;
    const of = { project, run };
    const tell = (told: FrameMessage): void => port.postMessage(told);
    tell({ kind: 'reset' });
    const receive = (received: ServerMessage): void => {
      if (!('agent' in received) || received.agent !== agent) return;
      if (received.of.run !== run || received.of.project !== project) return;
      switch (received.kind) {
        case 'terminal': {
          const { to, bytes, size } = received;
          next = to;
          setMessage(null);
          tell({ kind: 'output', bytes: bytesOf(bytes), ...size });
          break;
        }
        case 'terminal-ended':
          setMessage(received.message);
          break;
        case 'keys-refused':
          latest.current.refused(received.message);
          break;
      }
    };
    const unsubscribe = subscribe(
      { message: () => ({ kind: 'watch-terminal', of, agent, from: next ?? -PAST_BYTES }), receive },
      { kind: 'unwatch-terminal', of, agent },
    );
    return unsubscribe;
  }, [port, project, run, agent]);

  // Before the next key is pressed.
  useLayoutEffect(() => {
    port?.postMessage({ kind: 'types', types } satisfies FrameMessage);
    if (types) frame.current?.focus();
  }, [port, types]);

  const name = `Terminal of ${line(agent, 80)}`;
  return (
    <div class="term">
      {message !== null && <p class="empty">{line(message)}</p>}
      <iframe
        ref={frame}
        title={name}
        name={name}
        src={TERMINAL_FRAME_PATH}
        sandbox="allow-scripts"
        hidden={message !== null}
        onLoad={onLoad}
      />
    </div>
  );
}

/** A long paste is several messages. */
function sendKeys(of: RunName, agent: string, keys: Uint8Array, intoDialog: boolean): void {
  for (let at = 0; at < keys.length; at += KEYS_BYTES_MAX) {
    const bytes = textOf(keys.subarray(at, at + KEYS_BYTES_MAX));
    send({ kind: 'type-keys', of, agent, bytes, intoDialog });
  }
}

function textOf(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}
