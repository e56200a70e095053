package pymodule

import "memorymark/internal/torch"

// This file is what TorchScript runs otherwise than it is written.

// logBuckets is make_log_bucket_position, whose results go as soon as nothing uses them
// (transformers/models/deberta_v2/modeling_deberta_v2.py).
func logBuckets(m *Machine, a *args) value {
	distances := a.need(0, "relative_pos").(*tensor)
	f := m.t.Enter()
	x := f.Let(in(distances))
	if m.t.RunScript("make_log_bucket_position") {
		return m.tensor(f.Return(compiledBuckets(m.t, f, x)))
	}
	return m.tensor(f.Return(interpretedBuckets(m.t, f, x)))
}

// interpretedBuckets is the first run, operator by operator.
func interpretedBuckets(t *torch.Torch, f *torch.Frame, distances *torch.Var) torch.Value {
	sign := f.Let(t.Integers(distances))
	near := t.Compare(t.Compare(distances), t.Compare(distances)) // both go when the result is there
	inner := t.Full(torch.Int64)                                  // torch.tensor(mid - 1).type_as(relative_pos)
	absolute := f.Let(t.Integers(near, inner, t.Integers(distances)))
	log := f.Let(t.Floats(absolute))
	for range 5 { // log, / log, * (mid - 1), ceil, + mid
		log.Set(t.Floats(log))
	}
	small := t.Compare(absolute)
	absolute.Del()
	own := t.To(distances, torch.Float32)
	signed := t.Floats(log, sign)
	log.Del()
	sign.Del()
	return t.Floats(small, own, signed)
}

// compiledBuckets is the same once TorchScript has seen it run: the fuser leaves the
// sign, the number on the device, two results of a first kernel, what it does not fuse,
// ceil, and the result of a second kernel (torch/csrc/jit/passes/tensorexpr_fuser.cpp).
func compiledBuckets(t *torch.Torch, f *torch.Frame, distances *torch.Var) torch.Value {
	sign := f.Let(t.Integers(distances))
	inner := f.Let(t.Full(torch.Int64))
	log := f.Let(t.Floats(distances))
	absolute := f.Let(t.Integers(distances))
	inner.Del()
	log.Set(t.Floats(log))
	out := t.Floats(log)
	log.Del()
	absolute.Del()
	sign.Del()
	return out
}
