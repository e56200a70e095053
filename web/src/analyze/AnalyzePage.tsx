import { Empty } from '../ui/Empty';

export function AnalyzePage() {
  return <Empty title="Analyze: not here yet" />;
}
