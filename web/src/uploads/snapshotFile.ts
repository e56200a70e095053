// What a snapshot looks like from outside: enough to open a dropped one on any page, and to refuse another file before it is sent.
import { site } from '../api/engine';
import { Problem } from '../api/problem';
import { bytes } from '../format';

/** advice says what would be a snapshot. */
export const advice =
  'A snapshot is what torch.cuda.memory._dump_snapshot("snapshot.pickle") or "memorymark run --snapshot" writes, plain or compressed with gzip, zstd or xz.';

/** smaller says what to do about a file that is too large. */
export const smaller =
  site === undefined
    ? 'Compress it with xz or zstd, record fewer events (max_entries), or start the server with a larger --max-upload.'
    : 'Record fewer events (max_entries), or read it with a server of your own: uvx memorymark serve.';

/** namedAsSnapshot tells a snapshot by its name, which is all that is known at the moment of a drop. */
export function namedAsSnapshot(name: string): boolean {
  return /\.(pickle|pkl)(\.(gz|xz|zst))?$/i.test(name);
}

// How files begin that can be snapshots: PROTO of a pickle, gzip, zstd, xz.
const beginnings = [[0x80], [0x1f, 0x8b], [0x28, 0xb5, 0x2f, 0xfd], [0xfd, 0x37, 0x7a, 0x58, 0x5a]];

/** refusal is why a file is not worth sending, null if it is. The server reads it all and has the last word. */
export async function refusal(file: File, limit: number): Promise<Problem | null> {
  const head = new Uint8Array(await file.slice(0, 8).arrayBuffer());
  const begins = (beginning: number[]) => beginning.every((byte, i) => head[i] === byte);
  if (begins([0x50, 0x4b])) return unfit(`the file ${file.name} is an archive, such as torch.save writes for weights, and not a memory snapshot`);
  if (!beginnings.some(begins)) return unfit(`the file ${file.name} is not a memory snapshot of PyTorch`);
  if (file.size <= limit) return null;
  const large = `the file ${file.name} has ${bytes(file.size)}, and this ${site === undefined ? 'server' : 'page'} accepts ${bytes(limit)}`;
  return new Problem(413, large, [], smaller);
}

/** unfit is the problem with a file that is no snapshot. */
export function unfit(message: string): Problem {
  return new Problem(422, message, [], advice);
}
