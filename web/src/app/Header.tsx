import { Menu, Moon, Sun, X } from 'lucide-react';
import { useState } from 'react';
import { Link, useLocation, useSearch } from 'wouter';
import { site, sitePath } from '../api/engine';
import { carriedFrom, useCarried } from '../workload/carried';
import { guideTo } from '../guide/topic';
import { LogOutButton } from './LogIn';
import { RunningChip } from '../history/RunningChip';
import { MachineChip } from './MachineChip';
import { pages } from './pages';
import { setTheme, useTheme } from './theme';

export function Header() {
  const [open, setOpen] = useState(false);
  return (
    <header className="sticky top-0 z-30 border-b border-line bg-bg/90 backdrop-blur">
      <div className="mx-auto flex h-14 max-w-[1440px] items-center gap-2 px-4 sm:px-6">
        <Link href="/" className="flex items-center gap-2.5 rounded font-semibold tracking-tight" aria-label="MemoryMark, home">
          <Mark />
          <span>MemoryMark</span>
        </Link>
        <Navigation className="ml-4 hidden gap-0.5 lg:flex xl:ml-6 xl:gap-1" />
        <div className="ml-auto flex items-center gap-1">
          {site === undefined && (
            <>
              <RunningChip />
              <span className="hidden xl:block">
                <MachineChip />
              </span>
            </>
          )}
          <LogOutButton />
          <ThemeButton />
          <button
            type="button"
            className="rounded p-2 text-muted hover:text-text lg:hidden"
            aria-expanded={open}
            aria-controls="menu"
            aria-label={open ? 'Close the menu' : 'Open the menu'}
            onClick={() => setOpen(!open)}
          >
            {open ? <X size={18} aria-hidden /> : <Menu size={18} aria-hidden />}
          </button>
        </div>
      </div>
      {open && (
        <div id="menu" className="border-t border-line px-4 py-3 lg:hidden">
          <Navigation className="flex flex-col gap-1" onGo={() => setOpen(false)} />
        </div>
      )}
    </header>
  );
}

function Navigation({ className, onGo }: { className: string; onGo?: () => void }) {
  const [location] = useLocation();
  const carried = carriedFrom(useSearch(), useCarried());
  const inGuide = location.startsWith('/guide');
  return (
    <nav aria-label="Pages" className={className}>
      {pages
        .filter((page) => !page.hidden && !(page.needsServer && site !== undefined))
        .map(({ path, name, aboutWorkload }) => {
          const here = path === '/' ? location === '/' : location.startsWith(path);
          return (
            <Link
              key={path}
              href={aboutWorkload && carried ? `${path}?${carried}` : path}
              onClick={onGo}
              aria-current={here ? 'page' : undefined}
              className={look(here)}
            >
              {name}
            </Link>
          );
        })}
      {site === undefined ? (
        <Link href={guideTo(location)} onClick={onGo} aria-current={inGuide ? 'page' : undefined} className={look(inGuide)}>
          Guide
        </Link>
      ) : (
        <a href={`${sitePath}${guideTo(location).replace('/guide', '/docs')}/`} className={look(false)}>
          Guide
        </a>
      )}
    </nav>
  );
}

const look = (here: boolean) =>
  `rounded px-2.5 py-2 text-sm transition-colors lg:py-1.5 ${here ? 'bg-raised text-text' : 'text-muted hover:text-text'}`;

function ThemeButton() {
  const theme = useTheme();
  const other = theme === 'dark' ? 'light' : 'dark';
  return (
    <button
      type="button"
      className="rounded p-2 text-muted hover:text-text"
      aria-label={`Use the ${other} theme`}
      onClick={() => setTheme(other)}
    >
      {theme === 'dark' ? <Sun size={18} aria-hidden /> : <Moon size={18} aria-hidden />}
    </button>
  );
}

function Mark() {
  return (
    <svg viewBox="0 0 20 20" width="20" height="20" aria-hidden className="text-accent">
      <path d="M2.5 18v-7M7.5 18V5M12.5 18v-5M17.5 18V2" stroke="currentColor" strokeWidth="2.6" strokeLinecap="round" />
    </svg>
  );
}
