// Steps of a workflow with agents, as text.

export type AgentName = 'claude' | 'codex';

/** The name of the agent is that of its adapter. */
export function spawnStep(id: string, agent: AgentName, extra = ''): string {
  return step(id, 'spawn', `agent = "${agent}"\nadapter = "${agent}"`, extra);
}

export function agentStep(id: string, agent: string, prompt: string, extra = ''): string {
  return step(id, 'agent', `agent = "${agent}"\nprompt = ${JSON.stringify(prompt)}`, extra);
}

export function killStep(id: string, agent: string, extra = ''): string {
  return step(id, 'kill', `agent = "${agent}"`, extra);
}

/** Makes Claude Code in that folder send the run an event for each tool use. */
export function toolEventsStep(id: string, folder: string): string {
  const variables = `variables = { worktree = ${JSON.stringify(folder)}, events = "tools-only" }`;
  return step(id, 'expand', 'template = "lib/claude-events#setup-hooks"', variables);
}

export function step(id: string, executor: string, ...keys: readonly string[]): string {
  return `[[main.steps]]\nid = "${id}"\nexecutor = "${executor}"\n${keys.join('\n')}\n`;
}
