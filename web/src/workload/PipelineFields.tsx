import { useState } from 'react';
import { NumberInput, SelectInput, TextInput } from '../ui/Inputs';
import type { Parallel } from './describe';
import { parseStages } from './pipeline';

const schedules = { '1f1b': '1F1B', gpipe: 'GPipe' };

/** PipelineFields say which layers each GPU of a pipeline has, and in which order it runs them. */
export function PipelineFields({ parallel, onChange }: { parallel: Parallel; onChange(next: Parallel): void }) {
  const stages = parallel.stages?.join('/') ?? '';
  const [written, setWritten] = useState({ text: stages, stages }); // for these stages, until they are changed elsewhere
  const text = written.stages === stages ? written.text : stages;
  return (
    <>
      <TextInput
        label="Layers of each GPU"
        help="In the order of the model, as in 8/8/8/8. The first GPU also has the embedding, the last one the head."
        wrong={parseStages(text) ? undefined : 'Write a number for each GPU, as in 8/8/8/8.'}
        value={text}
        onChange={(next) => {
          const parsed = parseStages(next);
          setWritten({ text: next, stages: parsed?.join('/') ?? stages });
          if (parsed) onChange({ ...parallel, gpus: parsed.length, stages: parsed });
        }}
      />
      <div className="grid grid-cols-2 gap-4">
        <SelectInput
          label="Schedule"
          help="Schedule1F1B or ScheduleGPipe of torch.distributed.pipelining."
          value={parallel.schedule ?? '1f1b'}
          options={schedules}
          onChange={(schedule) => onChange({ ...parallel, schedule })}
        />
        <NumberInput
          label="Microbatches"
          help="Into how many parts the batch is split. They must divide it."
          min={1}
          value={parallel.microbatches}
          placeholder={String(parallel.gpus)}
          onChange={(microbatches) => onChange({ ...parallel, microbatches })}
        />
      </div>
    </>
  );
}
