import { useMutation } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { answer, api } from '../api/client';
import { Problem } from '../api/problem';
import { bytes } from '../format';
import { Button } from '../ui/Button';
import { ErrorBox } from '../ui/ErrorBox';
import { SelectInput } from '../ui/Inputs';
import { Panel } from '../ui/Panel';
import type { Grid } from './grid';
import { reportOf } from './sweep';

const formats = {
  page: { accept: 'text/html', extension: 'html', button: 'Make the page', link: 'Open' },
  folder: { accept: 'application/zip', extension: 'zip', button: 'Create the folder', link: 'Save' },
} as const;

type Format = keyof typeof formats;

/** ReportPanel has the server make the whole study of a model: a page, or the folder that the command line writes. */
export function ReportPanel({ grid }: { grid: Grid }) {
  const [chosen, setChosen] = useState('');
  const size = grid.sizes.includes(chosen) ? chosen : grid.sizes.at(-1)!;
  return (
    <Panel title="The whole study">
      <p className="text-sm text-muted">
        Peaks, what they are made of, fp32 against mixed precision, the largest allocations and every timeline of one model, at the contexts, the batch and on the
        card above. The page holds all of it; the folder has the snapshots too, as <code className="font-mono">memorymark study report</code> writes it.
      </p>
      <div className="mt-4 flex flex-wrap items-end gap-3">
        <div className="w-32">
          <SelectInput label="Model" options={Object.fromEntries(grid.sizes.map((name) => [name, name]))} value={size} onChange={setChosen} />
        </div>
        {(Object.keys(formats) as Format[]).map((format) => (
          // Another question is another report.
          <Make key={format + JSON.stringify(reportOf(size, grid))} format={format} size={size} grid={grid} />
        ))}
      </div>
    </Panel>
  );
}

function Make({ format, size, grid }: { format: Format; size: string; grid: Grid }) {
  const { accept, extension, button, link } = formats[format];
  const make = useMutation({
    mutationFn: async () => {
      const question = { body: reportOf(size, grid), params: { header: { Accept: accept } }, parseAs: 'blob' as const };
      const made = (await answer(api.POST('/v1/reports', question))) as unknown as Blob; // which the API's document cannot say
      return { address: URL.createObjectURL(made), bytes: made.size };
    },
  });
  const address = make.data?.address;
  useEffect(() => {
    return () => {
      if (address) URL.revokeObjectURL(address);
    };
  }, [address]);
  if (make.isError) {
    return (
      <div className="basis-full">
        <ErrorBox problem={Problem.of(make.error)} title="The report could not be created" onDismiss={make.reset} />
      </div>
    );
  }
  if (!make.data) {
    return (
      <Button disabled={make.isPending} onClick={() => make.mutate()}>
        {make.isPending ? 'Creating…' : button}
      </Button>
    );
  }
  const name = `memory-study-${size}.${extension}`;
  return (
    <a
      href={make.data.address}
      {...(format === 'page' ? { target: '_blank' } : { download: name })}
      className="rounded px-1 py-2 text-sm text-accent-text underline underline-offset-4"
    >
      {link} {name}, {bytes(make.data.bytes)}
    </a>
  );
}
