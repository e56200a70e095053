// A recording of any size, as a file of torch.cuda.memory._dump_snapshot: pickled by hand, since it takes few opcodes.

/** recording is training of that many allocations: parameters that stay, then steps that pile activations up and free them. */
export function recording(allocations: number): Buffer {
  const out = new Pickle();
  const steps = Math.max(3, Math.min(40, Math.round(allocations / 20_000)));
  let made = 0;
  const alloc = (size: number) => {
    out.event('alloc', 0x7f0000000000 + made * 0x1000000, size, made % 900);
    return { address: 0x7f0000000000 + made++ * 0x1000000, size };
  };
  const free = ({ address, size }: { address: number; size: number }) => {
    out.event('free_requested', address, size, 3);
    out.event('free_completed', address, size, 3);
  };
  for (let i = 0; i < 600; i++) alloc((1 + (i % 8)) << 20);
  const perStep = Math.floor((allocations - made) / steps);
  for (let step = 0; step < steps; step++) {
    const kept = [];
    for (let i = 0; i < perStep; i++) {
      if (i % 4 === 3) free(alloc(1 << 21));
      else kept.push(alloc([512, 4096, 65_536, 1 << 20, 3 << 20, 700_001][i % 6]!));
    }
    while (kept.length > 0) free(kept.pop()!);
  }
  return out.finish();
}

/** Pickle writes the snapshot; keys and stacks are written once and remembered, as Python does. */
class Pickle {
  private readonly parts: Buffer[] = [Buffer.from([0x80, 4])]; // PROTO 4
  private part = Buffer.alloc(1 << 20);
  private at = 0;
  private readonly memo = new Map<string, number>();
  private time = 1_700_000_000_000_000;

  constructor() {
    this.code('}('); // EMPTY_DICT MARK
    this.text('segments');
    this.code(']');
    this.text('device_traces');
    this.code('](](');
  }

  event(action: string, address: number, size: number, stack: number) {
    this.code('}(');
    this.text('action');
    this.text(action);
    this.text('addr');
    this.number(address);
    this.text('size');
    this.number(size);
    this.text('stream');
    this.number(0);
    this.text('time_us');
    this.number((this.time += 3));
    this.text('frames');
    this.frames(stack);
    this.code('u'); // SETITEMS
  }

  finish(): Buffer {
    this.code('eeu.'); // APPENDS of the events, of the devices; SETITEMS; STOP
    return Buffer.concat([...this.parts, this.part.subarray(0, this.at)]);
  }

  private frames(stack: number) {
    if (this.recall(`stack ${stack}`)) return;
    this.code('](}(');
    this.text('filename');
    this.text(`model/layer${stack % 48}.py`);
    this.text('line');
    this.number(10 + (stack % 90));
    this.text('name');
    this.text(`forward_${stack % 17}`);
    this.code('ue');
    this.remember(`stack ${stack}`);
  }

  private text(value: string) {
    if (this.recall(value)) return;
    this.room(value.length + 8);
    this.part[this.at++] = 0x8c; // SHORT_BINUNICODE
    this.part[this.at++] = value.length;
    this.at += this.part.write(value, this.at, 'latin1');
    this.remember(value);
  }

  private number(value: number) {
    this.room(10);
    this.part[this.at++] = 0x8a; // LONG1, of eight bytes
    this.part[this.at++] = 8;
    this.at = this.part.writeBigInt64LE(BigInt(value), this.at);
  }

  private remember(key: string) {
    this.memo.set(key, this.memo.size);
    this.part[this.at++] = 0x94; // MEMOIZE
  }

  private recall(key: string): boolean {
    const index = this.memo.get(key);
    if (index === undefined) return false;
    this.room(5);
    this.part[this.at++] = 0x6a; // LONG_BINGET
    this.at = this.part.writeUInt32LE(index, this.at);
    return true;
  }

  private code(text: string) {
    this.room(text.length);
    this.at += this.part.write(text, this.at, 'latin1');
  }

  private room(bytes: number) {
    if (this.at + bytes + 8 <= this.part.length) return;
    this.parts.push(this.part.subarray(0, this.at));
    this.part = Buffer.alloc(1 << 20);
    this.at = 0;
  }
}
