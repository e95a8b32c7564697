// The shape of what an agent has used, for files in which somebody else may have written.

import { fields, isNumber, isText, nullable, optional } from '../base/shape.ts';
import type { TokenParts, Usage } from './output.ts';

export const isUsage = fields<Usage>({
  usd: nullable(isNumber),
  tokens: nullable(isNumber),
  parts: optional(fields<TokenParts>({ input: isNumber, cached: isNumber, output: isNumber })),
  model: optional(isText),
  computedUsd: optional(isNumber),
});
