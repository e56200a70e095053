import { Empty } from '../ui/Empty';

export default function HistoryPage() {
  return <Empty title="History: not here yet" />;
}
