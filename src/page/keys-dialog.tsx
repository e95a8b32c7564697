// The list of keys, which `?` opens.

import { useEffect, useRef } from 'preact/hooks';
import { knownKeys, showsKeys } from './keys.ts';

export function KeysDialog() {
  return showsKeys.value ? <OpenKeysDialog /> : null;
}

function OpenKeysDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const close = (): void => void (showsKeys.value = false);
  return (
    <dialog ref={dialog} class="keys card" aria-label="Keys" onClose={close}>
      {knownKeys().map(({ title, commands }) => (
        <section key={title}>
          <h2>{title}</h2>
          <dl>
            {commands.map(({ key, label }) => (
              <div key={key}>
                <dt>
                  {key.split(' ').map((part) => (
                    <kbd key={part}>{NAMES[part] ?? part}</kbd>
                  ))}
                </dt>
                <dd>{label}</dd>
              </div>
            ))}
          </dl>
        </section>
      ))}
      <button type="button" class="b" onClick={close}>
        Close
      </button>
    </dialog>
  );
}

const NAMES: Readonly<Record<string, string>> = {
  Escape: 'esc',
  Enter: '⏎',
  ArrowLeft: '←',
  ArrowRight: '→',
  ArrowUp: '↑',
  ArrowDown: '↓',
};
