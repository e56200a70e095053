// A question in the words of other tools, ready to be copied.
import type { Workload } from '../api/client';
import { addressOf, type Question, questionOf } from '../workload/address';

/** plain is a workload without what is usual, in the order of the address. */
function plain(workload: Workload): Workload {
  const { model, ...rest } = questionOf(addressOf({ workload })).workload;
  return workload.model ? { model, ...rest } : rest;
}

/** commandLine asks the same question on the command line. The user's own program takes the place of the model. */
export function commandLine({ workload, ...rest }: Question, program?: string): string {
  const { model = program, config, ...keys } = plain(workload);
  const words = ['memorymark', 'analyze'];
  if (model) words.push(quote(model));
  for (const [key, value] of Object.entries(keys)) {
    const flag = `--${key.replaceAll('_', '-')}`;
    if (key === 'adapter' && isPlainLoRA(value)) words.push(...loraFlags(value));
    else words.push(...(value === true ? [flag] : [flag, quote(flagText(key, value))]));
  }
  if (model && config) words.push('--config', quote(JSON.stringify(config)));
  if (rest.global_batch) words.push('--global-batch', String(rest.global_batch));
  if (rest.multiple_of) words.push('--multiple-of', String(rest.multiple_of));
  if (rest.reserve_bytes) words.push('--reserve', `${rest.reserve_bytes}B`);
  if (rest.hours_per_year !== undefined) words.push('--hours', String(rest.hours_per_year));
  if (rest.price_per_hour !== undefined) words.push('--price', String(rest.price_per_hour));
  if (rest.run_tokens) words.push('--tokens', String(rest.run_tokens));
  if (rest.run_samples) words.push('--samples', String(rest.run_samples));
  if (model || !config) return words.join(' ');
  return `cat > config.json <<'END'\n${JSON.stringify(config, null, 2)}\nEND\n${words.slice(0, 2).join(' ')} ./config.json ${words.slice(2).join(' ')}`.trim();
}

interface LoRA {
  rank: number;
  targets?: string;
}

function isPlainLoRA(value: unknown): value is number | LoRA {
  if (typeof value !== 'object' || value === null) return true;
  const { kind, rank, targets = '', ...others } = value as LoRA & { kind?: string };
  return kind === 'lora' && rank > 0 && typeof targets === 'string' && Object.keys(others).length === 0;
}

function loraFlags(value: number | LoRA): string[] {
  const { rank, targets } = typeof value === 'number' ? { rank: value } : value;
  return ['--lora', String(rank), ...(targets ? ['--lora-targets', quote(targets)] : [])];
}

// flagText is a value as a flag takes it. Parallelism has a form of its own there: fsdp,gpus=8,offload=true.
function flagText(key: string, value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  if (key !== 'parallel') return JSON.stringify(value);
  const { kind, ...options } = value as { kind: string };
  return [kind, ...Object.entries(options).map(([name, option]) => `${name}=${Array.isArray(option) ? option.join('/') : String(option)}`)].join(',');
}

/** json is the workload as memorymark predict -f and POST /v1/predictions take it. */
export function json({ workload }: Question): string {
  return JSON.stringify(plain(workload), null, 2);
}

// quote makes one word of text for a shell.
function quote(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
