// The pages and their addresses. Each is loaded when it is first looked at;
// only Analyze, where people arrive, comes with the start.
import type { ComponentType } from 'react';
import { AnalyzePage } from '../analyze/AnalyzePage';
import { termKinds } from '../plan/terms';
import type { OwnKeys } from '../workload/address';
import { fetched } from './fetched';

interface PageEntry {
  path: string;
  name: string;
  Page: ComponentType;
  /** keeps the workload of the address when one goes there */
  aboutWorkload?: boolean;
  hidden?: boolean;
  /** keys of the address in addition to a workload's; absent where an address is not about a workload */
  own?: OwnKeys;
}

export const pages: PageEntry[] = [
  { path: '/', name: 'Analyze', Page: AnalyzePage, aboutWorkload: true, own: {} },
  { path: '/cards', name: 'Cards', Page: fetched(() => import('../compare/CardsPage')), aboutWorkload: true, own: {} },
  { path: '/settings', name: 'Combinations', Page: fetched(() => import('../compare/SettingsPage')), aboutWorkload: true, own: {} },
  { path: '/plan', name: 'Plan', Page: fetched(() => import('../plan/PlanPage')), aboutWorkload: true, own: termKinds },
  { path: '/timeline', name: 'Timeline', Page: fetched(() => import('../timeline')), aboutWorkload: true },
  { path: '/study', name: 'Study', Page: fetched(() => import('../study/StudyPage')), aboutWorkload: true },
  { path: '/history', name: 'History', Page: fetched(() => import('../history/HistoryPage')) },
  { path: '/history/compare', name: 'Side by side', Page: fetched(() => import('../history/ComparePage')), hidden: true },
  { path: '/history/:id', name: 'Analysis', Page: fetched(() => import('../history/AnalysisPage')), hidden: true },
  { path: '/workers', name: 'Workers', Page: fetched(() => import('../workers/WorkersPage')) },
  { path: '/guide', name: 'Guide', Page: fetched(() => import('../guide/GuidePage')), hidden: true },
  { path: '/guide/:topic', name: 'Guide', Page: fetched(() => import('../guide/GuidePage')), hidden: true },
];
