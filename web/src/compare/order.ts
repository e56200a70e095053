/** Order is by what a table is sorted. */
export interface Order<Row> {
  key: keyof Row;
  down: boolean;
}

/** sorted orders rows. What is not known comes last either way. */
export function sorted<Row extends object>(rows: Row[], { key, down }: Order<Row>): Row[] {
  return rows.toSorted((a, b) => {
    const [x, y] = [a[key], b[key]];
    if (!known(x) || !known(y)) return Number(!known(x)) - Number(!known(y));
    const by = typeof x === 'string' ? x.localeCompare(String(y)) : Number(x) - Number(y);
    return down ? -by : by;
  });
}

// A batch of 0 is one that does not exist: nothing fits.
function known(value: unknown): boolean {
  return value !== undefined && value !== null && value !== 0;
}
