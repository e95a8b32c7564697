// Steps of a workflow with agents, as text.

export type AgentName = 'claude' | 'codex';

/** An agent is called as its adapter is. */
export function spawnStep(id: string, agent: AgentName, extra = ''): string {
  return step(id, 'spawn', `agent = "${agent}"\nadapter = "${agent}"`, extra);
}

export function agentStep(id: string, agent: string, prompt: string, extra = ''): string {
  return step(id, 'agent', `agent = "${agent}"\nprompt = ${JSON.stringify(prompt)}`, extra);
}

export function killStep(id: string, agent: string, extra = ''): string {
  return step(id, 'kill', `agent = "${agent}"`, extra);
}

export function step(id: string, executor: string, ...keys: readonly string[]): string {
  return `[[main.steps]]\nid = "${id}"\nexecutor = "${executor}"\n${keys.join('\n')}\n`;
}
