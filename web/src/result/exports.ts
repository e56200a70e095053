// A question and its answer in the words of other tools, ready to be copied.
import type { Answer, Model, Workload } from '../api/client';
import { addressOf, type Question, questionOf } from '../workload/address';
import { describeParallel, rankOf } from '../workload/describe';
import { type Code, codeOf, quantizationArguments } from '../workload/fields';

/** plain is a workload without what is usual, in the order of the address. */
function plain(workload: Workload): Workload {
  return questionOf(addressOf({ workload })).workload;
}

/** commandLine asks the same question on the command line. */
export function commandLine({ workload, ...rest }: Question): string {
  const { model, config, ...keys } = plain(workload);
  const words = ['memorymark', 'analyze'];
  if (model) words.push(quote(model));
  for (const [key, value] of Object.entries(keys)) {
    const flag = `--${key.replaceAll('_', '-')}`;
    words.push(...(value === true ? [flag] : [flag, quote(flagText(key, value))]));
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

/** python is a training step with these settings and the batch worth using. */
export function python({ workload }: Question, answer: Answer, model: Model | undefined): string {
  const batch = answer.recommended_batch_size ?? answer.optimal_batch_size;
  const { precision = 'fp32', checkpointing, expandable_segments } = workload;
  const lines = [
    expandable_segments && 'import os\n\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # before torch\n',
    'import torch',
    `from transformers import ${classOf(workload, model)}`,
    '',
    precision === 'tf32' && 'torch.set_float32_matmul_precision("high")  # and convolutions, whose TF32 is on unless it is turned off',
    loading(workload, model),
    precision === 'bf16' && 'model = model.to(torch.bfloat16)',
    checkpointing && 'model.gradient_checkpointing_enable()',
    ...adapterLines(workload),
    workload.parallel && `# ${describeParallel(workload)}: the Plan page has what to launch, and the configuration of accelerate.`,
    optimizer(workload),
    `loader = torch.utils.data.DataLoader(dataset, batch_size=${batch}, drop_last=True)`,
    '',
    'for step, batch in enumerate(loader):',
    ...body(workload),
  ];
  return lines.filter((line) => line !== false && line !== undefined).join('\n');
}

function body({ precision = 'fp32', accumulate = 1, clip_grad_norm: clip, optimizer: name = 'adamw' }: Workload): string[] {
  const steps = name !== 'none';
  const each = codeOf(name)?.beside ? 'for optimizer in optimizers: ' : '';
  const types: Partial<Record<string, string>> = { 'amp-bf16': 'bfloat16', 'amp-fp16': 'float16' };
  const autocast = types[precision];
  const scaled = precision === 'amp-fp16';
  const loss = 'loss = model(**batch).loss' + (accumulate > 1 ? ` / ${accumulate}` : '');
  const inside = accumulate > 1 ? '        ' : '    ';
  return [
    ...(autocast ? [`    with torch.autocast("cuda", torch.${autocast}):`, `        ${loss}`] : [`    ${loss}`]),
    scaled ? '    scaler.scale(loss).backward()' : '    loss.backward()',
    ...(steps && accumulate > 1 ? [`    if (step + 1) % ${accumulate} == 0:`] : []),
    ...(clip && scaled && steps ? [`${inside}${each}scaler.unscale_(optimizer)`] : []),
    ...(clip ? [`${inside}torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)`] : []),
    ...(steps ? (scaled ? [`${inside}${each}scaler.step(optimizer)`, `${inside}scaler.update()`] : [`${inside}${each}optimizer.step()`]) : []),
    ...(steps ? [`${inside}${each}optimizer.zero_grad()`] : ['    model.zero_grad()']),
  ];
}

function classOf({ config }: Workload, model: Model | undefined): string {
  const named = config?.architectures ?? model?.config.architectures;
  return Array.isArray(named) && typeof named[0] === 'string' ? named[0] : 'AutoModel';
}

function loading({ config, attention, quantize }: Workload, model: Model | undefined): string {
  const name = classOf({ config }, model);
  const eager = attention === 'eager' ? ', attn_implementation="eager"' : '';
  if (config || !model?.huggingface_id) return `model = ${name}._from_config(config${eager}).cuda()  # config: of the model's config.json`;
  const bits = quantizationArguments(quantize);
  const configured = bits ? `from transformers import BitsAndBytesConfig\nquantization = BitsAndBytesConfig(${bits})\n` : '';
  const stored = bits ? ', quantization_config=quantization' : '';
  return `${configured}model = ${name}.from_pretrained("${model.huggingface_id}"${eager}${stored}).cuda()`;
}

// adapterLines put PEFT's adapters over the model.
function adapterLines(workload: Workload): string[] {
  const rank = rankOf(workload);
  if (rank === 0) return [];
  const { targets } = (typeof workload.adapter === 'object' ? workload.adapter : {}) as { targets?: string | string[] };
  const chosen = targets ? `, target_modules=${JSON.stringify(targets)}` : '';
  const kbit = quantizationArguments(workload.quantize);
  return [
    `from peft import LoraConfig, get_peft_model${kbit ? ', prepare_model_for_kbit_training' : ''}`,
    ...(kbit ? ['model = prepare_model_for_kbit_training(model)'] : []),
    `model = get_peft_model(model, LoraConfig(r=${rank}${chosen}))`,
  ];
}

function optimizer({ optimizer: name = 'adamw', optimizer_impl: how = 'foreach', precision }: Workload): string | false {
  const code = codeOf(name);
  if (!code) return false;
  const imported = code.module ? `import ${code.module}\n` : '';
  const impl = how === 'foreach' || code.module ? [] : [how === 'fused' ? 'fused=True' : 'foreach=False'];
  const made = code.beside ? both(code, code.beside, impl) : `optimizer = ${call(code, 'model.parameters()', impl)}`;
  return imported + made + (precision === 'amp-fp16' ? '\nscaler = torch.amp.GradScaler()' : '');
}

function call(code: Code, parameters: string, impl: string[]): string {
  const given = Object.entries(code.arguments).map(([key, value]) => `${key}=${value < 0.01 ? value.toExponential() : value}`);
  return `${code.module ?? 'torch.optim'}.${code.class}(${[parameters, ...given, ...impl].join(', ')})`;
}

// both makes an optimizer of matrices, and one of the rest, if there is any.
function both(code: Code, beside: Code, impl: string[]): string {
  const made = [`optimizers = [${call(code, 'matrices', [])}]`, 'if others:', `    optimizers.append(${call(beside, 'others', impl)})`];
  return code.split + made.join('\n');
}

/** trainerArguments is the same for transformers' Trainer. */
export function trainerArguments({ workload }: Question, answer: Answer): string {
  const { precision = 'fp32', optimizer: name = 'adamw', optimizer_impl: how = 'foreach' } = workload;
  const code = codeOf(name);
  if (code?.beside) return `# Trainer steps one optimizer. ${code.class} needs another one beside it: use the Python loop.`;
  const extra = Object.entries(code?.arguments ?? {}).filter(([key]) => key !== 'lr').map(([key, value]) => `${key}=${value}`).join(',');
  const planned = answer.accumulation;
  const settings: [string, string | number | false][] = [
    ['output_dir', '"out"'],
    ['per_device_train_batch_size', planned?.micro_batch ?? answer.recommended_batch_size ?? answer.optimal_batch_size],
    ['gradient_accumulation_steps', planned?.steps ?? workload.accumulate ?? 1],
    ['bf16', precision === 'amp-bf16' && 'True'],
    ['fp16', precision === 'amp-fp16' && 'True'],
    ['tf32', precision === 'tf32' && 'True'],
    ['gradient_checkpointing', workload.checkpointing === true && 'True'],
    ['optim', code?.trainer !== undefined && `"${code.trainer}${how === 'fused' && code.trainer.endsWith('_torch') ? '_fused' : ''}"`],
    ['optim_args', extra !== '' && `"${extra}"`],
    ['max_grad_norm', workload.clip_grad_norm ? 1.0 : 0],
    ['dataloader_drop_last', 'True'],
  ];
  const lines = settings.filter(([, value]) => value !== false).map(([key, value]) => `    ${key}=${value},`);
  return ['from transformers import TrainingArguments', '', 'args = TrainingArguments(', ...lines, ')'].join('\n');
}

// quote makes one word of text for a shell.
function quote(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
