import type { Model, Workload } from '../api/client';
import { NumberInput, SelectInput, SwitchInput } from '../ui/Inputs';
import { type Parallel, parallelKinds, parallelOf } from './describe';
import { evenStages, layersOf } from './pipeline';
import { PipelineFields } from './PipelineFields';
import type { QuestionState } from './useQuestion';

const usual = 8;
const sharded = ['fsdp', 'hsdp', 'fsdp+tp'];
const replicated = ['ddp', 'zero1'];

interface Props {
  workload: Workload;
  models: Model[];
  wrong?: string;
  onChange: QuestionState['change'];
}

/** ParallelFields say how a step is shared among GPUs. The batch is then that of each of them. */
export function ParallelFields({ workload, models, wrong, onChange }: Props) {
  const parallel = parallelOf(workload);
  const set = (next: Parallel | undefined) => onChange({ parallel: next as Workload['parallel'] });
  const layers = layersOf(workload, models) ?? usual;
  const choose = (kind: string) => set(kind === '' ? undefined : fresh(kind, parallel?.gpus ?? usual, layers));
  const resize = (gpus: number) => parallel && set(parallel.stages ? { ...parallel, gpus, stages: evenStages(layers, gpus) } : { ...parallel, gpus });
  const option = (name: 'offload' | 'gradient_as_bucket_view' | 'static_graph', label: string, help: string) => (
    <SwitchInput label={label} help={help} value={parallel?.[name] === true} onChange={(on) => set({ ...parallel!, [name]: on || undefined })} />
  );
  return (
    <>
      <div className="grid grid-cols-2 gap-4">
        <SelectInput label="Parallelism" wrong={wrong} value={parallel?.kind ?? ''} options={{ '': 'one GPU', ...parallelKinds }} onChange={choose} />
        {parallel && <NumberInput label="GPUs" min={2} value={parallel.gpus} onChange={(gpus) => gpus && resize(gpus)} />}
        {parallel?.kind === 'hsdp' && (
          <NumberInput label="Shards over" unit="GPUs" value={parallel.shard} onChange={(shard) => set({ ...parallel, shard })} />
        )}
        {parallel?.kind === 'fsdp+tp' && (
          <NumberInput label="Matrices over" unit="GPUs" value={parallel.tensor} onChange={(tensor) => set({ ...parallel, tensor })} />
        )}
      </div>
      {parallel && sharded.includes(parallel.kind) && (
        <>
          <SwitchInput
            label="Parameters in bf16"
            help="FSDP's mixed precision: parameters in bf16, gradients reduced in fp32."
            value={parallel.mixed_precision === 'bf16'}
            onChange={(on) => set({ ...parallel, mixed_precision: on ? 'bf16' : undefined })}
          />
          {option('offload', 'Offload to the CPU', "FSDP's CPUOffloadPolicy.")}
        </>
      )}
      {parallel && replicated.includes(parallel.kind) && (
        <>
          {option('gradient_as_bucket_view', 'Gradients in buckets', "DDP's gradient_as_bucket_view.")}
          {option('static_graph', 'Static graph', "DDP's static_graph.")}
        </>
      )}
      {parallel?.kind === 'pipeline' && <PipelineFields parallel={parallel} onChange={set} />}
      {parallel && (
        <p className="text-xs text-muted">
          {parallel.kind === 'pipeline' ? 'All GPUs work on the same batch.' : 'Batch, memory and speed are per GPU.'}
        </p>
      )}
    </>
  );
}

// fresh is a kind of parallelism with the options that it cannot do without.
function fresh(kind: string, gpus: number, layers: number): Parallel {
  const half = Math.max(2, gpus / 2);
  if (kind === 'pipeline') return { kind, gpus: Math.min(gpus, layers), stages: evenStages(layers, Math.min(gpus, layers)) };
  return { kind, gpus, ...(kind === 'hsdp' ? { shard: half } : {}), ...(kind === 'fsdp+tp' ? { tensor: 2 } : {}) };
}
