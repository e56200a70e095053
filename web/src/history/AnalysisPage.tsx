import { Empty } from '../ui/Empty';

export default function AnalysisPage() {
  return <Empty title="Analysis: not here yet" />;
}
