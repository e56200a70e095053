import { Empty } from '../ui/Empty';

export default function WorkersPage() {
  return <Empty title="Workers: not here yet" />;
}
