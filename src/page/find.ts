// The text in the field at the top: pages show only what contains it.

import { signal } from '@preact/signals';

export const findText = signal('');

/** Whether one of the texts contains it. */
export function isFound(texts: readonly (string | null)[]): boolean {
  const wanted = findText.value.trim().toLowerCase();
  return wanted === '' || texts.some((text) => text?.toLowerCase().includes(wanted) === true);
}
