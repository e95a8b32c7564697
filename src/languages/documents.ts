// Every kind of document whose keys are described by tables, by the name that `meow schema` knows it by.

import { CONDUCTOR } from './conductor/keys.ts';
import { CONFIG } from './config-keys.ts';
import type { Document } from './keys.ts';
import { MEOW } from './meow/keys.ts';

export const DOCUMENTS: Readonly<Record<string, Document>> = { meow: MEOW, conductor: CONDUCTOR, config: CONFIG };
