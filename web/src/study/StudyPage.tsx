import { Empty } from '../ui/Empty';

export default function StudyPage() {
  return <Empty title="Study: not here yet" />;
}
