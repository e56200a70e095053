import { Empty } from '../ui/Empty';

export default function CardsPage() {
  return <Empty title="Compare cards: not here yet" />;
}
