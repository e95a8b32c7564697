// What a test reports if something in it is not as expected.

import type { Json } from '../base/json.ts';

export interface TestFailure {
  /** Path of what failed: `steps.deploy-prod`, `never.0`, `command`, `on.1`. */
  readonly expect: string;
  readonly expected: Json;
  readonly got: Json;
  /** A sentence; may have several lines. */
  readonly message: string;
  /** For a failure in a faulty world: the number of faults that it needs, and the test that repeats it. */
  readonly faults?: number;
  readonly seed?: number;
  readonly test?: string;
}
