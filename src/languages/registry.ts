// The workflow languages.

import { conductor } from './conductor/language.ts';
import type { Language } from './language.ts';
import { meow } from './meow/language.ts';
import { raymond } from './raymond/language.ts';

export const LANGUAGES: readonly Language[] = [meow, raymond, conductor];
