// The pages and their addresses. Each is loaded when it is first looked at;
// only Analyze, where people arrive, comes with the start.
import type { ComponentType } from 'react';
import { site } from '../api/engine';
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
  /** a site of plain files does not have it: it keeps or runs something */
  needsServer?: boolean;
  /** keys of the address in addition to a workload's; absent where an address is not about a workload */
  own?: OwnKeys;
}

export const pages: PageEntry[] = [
  { path: '/', name: 'Analyze', Page: AnalyzePage, aboutWorkload: true, own: {} },
  { path: '/cards', name: 'Cards', Page: fetched(() => import('../compare/CardsPage')), aboutWorkload: true, own: {} },
  { path: '/settings', name: 'Combinations', Page: fetched(() => import('../compare/SettingsPage')), aboutWorkload: true, own: {} },
  { path: '/plan', name: 'Plan', Page: fetched(() => import('../plan/PlanPage')), aboutWorkload: true, own: termKinds },
  { path: '/timeline', name: 'Timeline', Page: fetched(() => import('../timeline')), aboutWorkload: site === undefined },
  { path: '/study', name: 'Study', Page: fetched(() => import('../study/StudyPage')), aboutWorkload: true, needsServer: true },
  { path: '/history', name: 'History', Page: fetched(() => import('../history/HistoryPage')), needsServer: true },
  { path: '/history/compare', name: 'Side by side', Page: fetched(() => import('../history/ComparePage')), hidden: true, needsServer: true },
  { path: '/history/:id', name: 'Analysis', Page: fetched(() => import('../history/AnalysisPage')), hidden: true, needsServer: true },
  { path: '/workers', name: 'Workers', Page: fetched(() => import('../workers/WorkersPage')), needsServer: true },
  { path: '/guide', name: 'Guide', Page: fetched(() => import('../guide/GuidePage')), hidden: true },
  { path: '/guide/:topic', name: 'Guide', Page: fetched(() => import('../guide/GuidePage')), hidden: true },
];
