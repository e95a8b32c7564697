// The environment that meow itself was called in.

export function ownEnvironment(): Readonly<Record<string, string>> {
  const entries = Object.entries(process.env);
  return Object.fromEntries(entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}
