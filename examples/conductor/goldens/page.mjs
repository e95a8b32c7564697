export function page(reader) {
  return `<h1>Hello, world!</h1>\n<p>You are ${reader}.</p>\n`;
}
