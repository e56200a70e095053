import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { newQueryClient } from './api/queries';
import { App } from './app/App';
import { adopt, leisure } from './app/known';
import { beginAtTop } from './app/scroll';
import { followSystem } from './app/theme';
import './theme.css';

const queries = newQueryClient();
const root = document.getElementById('root');
if (!root) throw new Error('index.html has no #root');
followSystem();
beginAtTop();
await leisure();
adopt(queries);
createRoot(root).render(
  <StrictMode>
    <App queries={queries} />
  </StrictMode>,
);
