// Control characters, which can control a terminal or end a line.

export function hasControlCharacters(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 32 || (code >= 127 && code < 160)) return true;
  }
  return false;
}
