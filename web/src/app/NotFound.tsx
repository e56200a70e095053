import { Link } from 'wouter';
import { PageTitle } from '../ui/PageTitle';

export function NotFound() {
  return (
    <>
      <PageTitle title="Page not found" />
      <Link href="/" className="text-accent-text underline underline-offset-4">
        Analyze a model
      </Link>
    </>
  );
}
