// Durations that grow. Only these texts are drawn again each second, not what is around them.

import { now } from './clock.ts';
import { age } from './shown-text.ts';

/** How long ago: `4m`. Nothing if it is unknown. `since`: ISO 8601. */
export function Age({ since }: { readonly since: string | null }) {
  const at = since === null ? NaN : Date.parse(since);
  return <>{Number.isNaN(at) ? '' : age(now.value - at)}</>;
}
