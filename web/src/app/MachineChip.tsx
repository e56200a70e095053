import { useHealth } from '../api/queries';

/** MachineChip says what the server's own machine has. */
export function MachineChip() {
  const health = useHealth();
  if (!health.data) return null;
  const { gpu_available, gpu_name, gpu_memory_total_gb } = health.data;
  return (
    <span
      className="hidden items-center gap-2 rounded-full border border-line px-3 py-1 text-xs text-muted sm:flex"
      title={gpu_available ? 'The GPU of the machine that the server runs on' : 'The server has no GPU: it predicts, and workers can measure'}
    >
      <span aria-hidden className={`size-1.5 rounded-full ${gpu_available ? 'bg-accent' : 'bg-faint'}`} />
      {gpu_available ? `${gpu_name}, ${gpu_memory_total_gb} GiB` : 'No GPU here'}
    </span>
  );
}
