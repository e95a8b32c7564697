// What the run says ends, where it tells how to report, with the line of the command that does (`meow done --output …`).
// Whoever has a tool in its place is told that.

export function forTool(text: string): string {
  const at = text.lastIndexOf('\n') + 1;
  const [, outputs] = COMMAND.exec(text.slice(at)) ?? [];
  if (outputs === undefined) return text;
  const members = [...outputs.matchAll(OUTPUT)].map(
    ({ 1: name = '', 2: place = '' }) => `${JSON.stringify(name)}: ${place}`,
  );
  const input = members.length === 0 ? '' : ` with {"outputs": {${members.join(', ')}}}`;
  return `${text.slice(0, at)}  the tool done${input}`;
}

const COMMAND = /^ {2}meow done((?: --output [^\s=]+=<\w+>)*)$/;
const OUTPUT = / --output ([^\s=]+)=(<\w+>)/g;
