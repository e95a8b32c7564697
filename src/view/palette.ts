// The colours a face may have. Views name what they mean to set off; how it looks, and whether at all, is the face's.

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
