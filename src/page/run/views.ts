// The views of a run beside its timeline: loaded when the first of them is opened.

export { AgentPage } from './agent-page.tsx';
export { AgentsView } from './agents-view.tsx';
export { CostView } from './cost-view.tsx';
export { GatesView } from './gates-view.tsx';
export { GraphView } from './graph-view.tsx';
export { StoryView } from './story-view.tsx';
