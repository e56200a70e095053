import { Link } from 'wouter';
import { Empty } from '../ui/Empty';

export function NotFound() {
  return (
    <Empty title="There is no such page">
      <Link href="/" className="text-accent-text underline underline-offset-4">
        Analyze a model
      </Link>
    </Empty>
  );
}
