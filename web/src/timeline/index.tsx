import { Empty } from '../ui/Empty';

export default function TimelinePage() {
  return <Empty title="Timeline: not here yet" />;
}
