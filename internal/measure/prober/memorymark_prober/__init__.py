"""MemoryMark's prober: runs real training steps and says what they took.

It owns only what needs PyTorch. MemoryMark starts it, asks for probes in JSON
lines and reads what they measured; which batches to try is decided there.

  protocol    lines of JSON, and what each side may say
  nursery     the parent: imports once, touches no device, forks a child a probe
  imports     what is imported, once
  child       a fresh process that runs one probe and reports as it goes
  probe       the steps of a probe and what is read off the device
  devices     CUDA, MPS and CPU: peaks, limits, synchronisation
  live        live tensor bytes, for devices without allocator statistics
  subject     what is trained: model, batch, optimizer, loss
  catalog     the subjects that a workload names
  auto        the subjects of families that are not modelled
  lm          the plain language model, written out
  user        the subject that a user's own function makes
  failure     why a step failed
"""
