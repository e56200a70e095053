import type { Card, Schemas } from '../api/client';
import { bytes } from '../format';
import { Combobox, type Option } from '../ui/Combobox';

interface Props {
  card: Card | undefined;
  cards: Schemas['Cards'] | undefined;
  workers: Schemas['Worker'][];
  onChoose(id: string): void;
}

/** CardPicker chooses a card: this machine's, a worker's, or any of the catalog. */
export function CardPicker({ card, cards, workers, onChoose }: Props) {
  const atWorkers = new Set(workers.flatMap((worker) => (worker.cards ?? []).map((c) => c.id)));
  const options = (cards?.gpus ?? []).map((each): Option & { rank: number } => {
    const [rank, group] =
      each.id === cards?.this_machine ? [0, 'This machine'] : atWorkers.has(each.id) ? [1, 'On a worker: can be measured'] : [2, 'Catalog: predicted'];
    return { value: each.id, name: each.name, note: bytes(each.memory.bytes), also: each.aliases?.join(' '), group, rank };
  });
  return (
    <Combobox
      label="Card"
      options={options.toSorted((a, b) => a.rank - b.rank)}
      value={card?.id}
      shown={card ? `${card.name}, ${bytes(card.memory.bytes)}` : '…'}
      onChoose={onChoose}
    />
  );
}
