// Characters that are no text: they command a terminal, or end a line where none should end.

export function hasControls(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 32 || (code >= 127 && code < 160)) return true;
  }
  return false;
}
