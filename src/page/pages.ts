// The pages beside the fleet and the run: loaded when the first of them is opened.

export { ComparePage } from './compare-page.tsx';
export { InboxPage } from './inbox-page.tsx';
export { SchedulePage } from './schedule-page.tsx';
export { UsagePage } from './usage-page.tsx';
export { WorkflowsPage } from './workflows-page.tsx';
