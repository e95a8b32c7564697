// The page of the graph. Names in it come from a workflow that anybody may have written, so the policy of the page forbids
// everything but images in the page itself: a picture cannot run scripts, and text is escaped.

const POLICY = "default-src 'none'; img-src data:";

export function graphPage(content: { readonly svg: string } | { readonly problem: string }): string {
  const body =
    'svg' in content
      ? `<img alt="Graph" src="data:image/svg+xml;base64,${Buffer.from(content.svg).toString('base64')}">`
      : `<pre>${escaped(content.problem)}</pre>`;
  return `<!DOCTYPE html>
<html>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${POLICY}">
</head>
<body>
${body}
</body>
</html>
`;
}

function escaped(text: string): string {
  const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return text.replaceAll(/[&<>"]/g, (char) => entities[char] ?? char);
}
