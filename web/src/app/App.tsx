import { QueryClientProvider } from '@tanstack/react-query';
import { Suspense } from 'react';
import { Route, Switch, useLocation } from 'wouter';
import { newQueryClient, useHealth } from '../api/queries';
import { Crash } from './Crash';
import { Header } from './Header';
import { LogIn } from './LogIn';
import { NotFound } from './NotFound';
import { pages } from './pages';
import { ServerNotice } from './ServerNotice';
import { Loading } from '../ui/Loading';
import { Uploads } from '../uploads/Uploads';

const queries = newQueryClient();

export function App() {
  return (
    <QueryClientProvider client={queries}>
      <a
        href="#content"
        className="sr-only z-50 rounded bg-accent px-3 py-2 text-on-accent focus:not-sr-only focus:fixed focus:top-2 focus:left-2"
      >
        Skip to the content
      </a>
      <Header />
      <ServerNotice />
      <LogIn />
      <Uploads />
      <main id="content" tabIndex={-1} className="mx-auto w-full max-w-[1440px] px-4 py-6 outline-none sm:px-6 sm:py-8">
        <Pages />
      </main>
    </QueryClientProvider>
  );
}

function Pages() {
  const [location] = useLocation();
  const lost = useHealth().isError;
  return (
    <Crash at={`${location} ${lost}`}>
      <Suspense fallback={<Loading what="the page" />}>
        <Switch>
          {pages.map(({ path, Page }) => (
            <Route key={path} path={path} component={Page} />
          ))}
          <Route component={NotFound} />
        </Switch>
      </Suspense>
    </Crash>
  );
}
