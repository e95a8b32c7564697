// What the text of a script says about its exit code.

/** Whether the script ends with `exit N`, not 0, and nothing before that can end it in another way. */
export function alwaysFails(script: string): boolean {
  const [whole] = /(?:^|;|&&|\n)\s*exit\s+[1-9]\d*\s*;?\s*$/.exec(script) ?? [];
  return whole !== undefined && !CONDITIONAL.test(script.slice(0, -whole.length));
}

/** Also inside of quotes: then nothing is known. */
const CONDITIONAL = /\|\||<<|\b(?:exit|exec|return|trap|if|case|while|until|for|kill)\b/;
