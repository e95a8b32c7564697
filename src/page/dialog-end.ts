// The part of an agent's screen that asks something.

/** The question of a dialog is at the end of the screen. */
const LINES = 8;

export function endOfDialog(screen: string): string {
  return screen.slice(-8000).trimEnd().split('\n').slice(-LINES).join('\n');
}
