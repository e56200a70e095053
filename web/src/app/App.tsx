import { type QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { Suspense } from 'react';
import { Route, Router, Switch, useLocation } from 'wouter';
import { site, sitePath } from '../api/engine';
import { useHealth } from '../api/queries';
import { Crash } from './Crash';
import { Header } from './Header';
import { LogIn } from './LogIn';
import { NeedsServer } from './NeedsServer';
import { NotFound } from './NotFound';
import { pages } from './pages';
import { ServerNotice } from './ServerNotice';
import { Readable } from './Unreadable';
import { Loading } from '../ui/Loading';
import { Uploads } from '../uploads/Uploads';

export function App({ queries }: { queries: QueryClient }) {
  return (
    <QueryClientProvider client={queries}>
      <Router base={sitePath}>
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
        {site === undefined && (
          <footer className="mx-auto max-w-[1440px] px-4 pb-6 text-xs text-muted sm:px-6 print:hidden">
            <a href="/docs" className="inline-flex min-h-6 items-center underline underline-offset-4 hover:text-text">
              API
            </a>
          </footer>
        )}
      </Router>
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
          {pages.map(({ path, name, Page, own, needsServer }) => (
            <Route key={path} path={path}>
              {needsServer && site !== undefined ? (
                <NeedsServer name={name} />
              ) : own ? (
                <Readable own={own}>
                  <Page />
                </Readable>
              ) : (
                <Page />
              )}
            </Route>
          ))}
          <Route component={NotFound} />
        </Switch>
      </Suspense>
    </Crash>
  );
}
