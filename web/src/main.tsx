import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { App } from './app/App';
import { beginAtTop } from './app/scroll';
import { followSystem } from './app/theme';
import './theme.css';

const root = document.getElementById('root');
if (!root) throw new Error('index.html has no #root');
followSystem();
beginAtTop();
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
