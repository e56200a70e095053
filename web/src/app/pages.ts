// The pages and their addresses. Each is loaded when it is first looked at;
// only Analyze, where people arrive, comes with the start.
import { type ComponentType, lazy } from 'react';
import { AnalyzePage } from '../analyze/AnalyzePage';

interface PageEntry {
  path: string;
  name: string;
  Page: ComponentType;
  /** keeps the workload of the address when one goes there */
  aboutWorkload?: boolean;
  hidden?: boolean;
}

export const pages: PageEntry[] = [
  { path: '/', name: 'Analyze', Page: AnalyzePage, aboutWorkload: true },
  { path: '/cards', name: 'Cards', Page: lazy(() => import('../compare/CardsPage')), aboutWorkload: true },
  { path: '/settings', name: 'Settings', Page: lazy(() => import('../compare/SettingsPage')), aboutWorkload: true },
  { path: '/timeline', name: 'Timeline', Page: lazy(() => import('../timeline')) },
  { path: '/study', name: 'Study', Page: lazy(() => import('../study/StudyPage')), aboutWorkload: true },
  { path: '/history', name: 'History', Page: lazy(() => import('../history/HistoryPage')) },
  { path: '/history/:id', name: 'Analysis', Page: lazy(() => import('../history/AnalysisPage')), hidden: true },
  { path: '/workers', name: 'Workers', Page: lazy(() => import('../workers/WorkersPage')) },
];
