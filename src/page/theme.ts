// Light or dark: as the system says, unless a person has chosen.

import { signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';

const KEY = 'meow-theme';

export const theme = signal<Theme>(storedTheme());

export function setTheme(chosen: Theme): void {
  theme.value = chosen;
  try {
    localStorage.setItem(KEY, chosen);
  } catch (error) {
    // A browser may refuse to store anything; the choice then lasts as long as the page.
    if (!(error instanceof DOMException)) throw error;
  }
  applyTheme();
}

export function applyTheme(): void {
  const { dataset } = document.documentElement;
  if (theme.value === 'system') delete dataset['theme'];
  else dataset['theme'] = theme.value;
}

function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(KEY);
    return stored === 'light' || stored === 'dark' ? stored : 'system';
  } catch (error) {
    if (error instanceof DOMException) return 'system';
    throw error;
  }
}
