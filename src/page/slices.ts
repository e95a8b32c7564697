// Long work in slices, so that the page answers keys and draws meanwhile.

const SLICE_MS = 8;

/** Calls `step` until it returns false, and then `done`. Returns what stops it. The first slice runs at once. */
export function sliced(step: () => boolean, done: () => void): () => void {
  // Unlike timers, messages are not slowed down in a hidden page.
  const { port1, port2 } = new MessageChannel();
  const stopped = new AbortController();
  const slice = (): void => {
    const end = performance.now() + SLICE_MS;
    while (!stopped.signal.aborted) {
      if (!step()) {
        port1.close();
        done();
        return;
      }
      if (performance.now() >= end) {
        port2.postMessage(null);
        return;
      }
    }
  };
  port1.addEventListener('message', slice);
  port1.start();
  slice();
  return () => {
    stopped.abort();
    port1.close();
  };
}
