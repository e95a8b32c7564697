// Colours for output. Views choose a style by meaning; the face defines how it looks.

export type Style = (text: string) => string;

export interface Palette {
  readonly bold: Style;
  readonly dim: Style;
  readonly red: Style;
  readonly green: Style;
  readonly yellow: Style;
  readonly cyan: Style;
}

const unstyled: Style = (text) => text;

export const plainPalette: Palette = {
  bold: unstyled,
  dim: unstyled,
  red: unstyled,
  green: unstyled,
  yellow: unstyled,
  cyan: unstyled,
};
