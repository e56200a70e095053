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
    return { value: each.id, name: each.name, note: bytes(each.memory.bytes), also: [...(each.aliases ?? []), soldAs(each.memory.bytes)].join(' '), group, rank };
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

const sizes = [8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 64, 80, 94, 96, 128, 141, 180, 192];

// soldAs is the amount of memory that is written on a card, which is a little more than PyTorch finds on it.
function soldAs(found: number): string {
  return `${sizes.find((gigabytes) => gigabytes * 2 ** 30 >= found * 0.99) ?? ''}gb`;
}
