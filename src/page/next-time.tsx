// When a schedule starts its next run.

import { now } from './clock.ts';
import { age, moment } from './shown-text.ts';

/** `02:00, in 13h 19m`; nothing if there is no next time. */
export function NextTime({ at }: { readonly at: string | null }) {
  const time = at === null ? NaN : Date.parse(at);
  if (Number.isNaN(time)) return <span class="dim">no next time</span>;
  return (
    <>
      {moment(time, now.value)}, in {age(time - now.value)}
    </>
  );
}
