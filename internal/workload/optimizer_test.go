package workload

import (
	"strings"
	"testing"
)

// Muon takes matrices alone, so a second optimizer is beside it. That is not
// everywhere possible or known, and PyTorch has not always had it.
func TestMuon(t *testing.T) {
	for keys, want := range map[string]string{
		`"batch": 8`:                                            "",
		`"adapter": {"rank": 8}`:                                "",
		`"loop": {"outputs": "kept"}`:                           "",
		`"parallel": {"kind": "ddp", "gpus": 8}`:                "",
		`"loop": "trainer"`:                                     `optimizer is "muon", which is two: Muon for matrices and AdamW for the rest; loop "trainer" steps one, so loop must be plain`,
		`"loop": "accelerate"`:                                  `loop "accelerate" steps one`,
		`"parallel": {"kind": "fsdp", "gpus": 8}`:               `optimizer is "muon", which is not modelled with parallel fsdp; use ddp, or another optimizer`,
		`"parallel": {"kind": "zero1", "gpus": 8}`:              `not modelled with parallel zero1`,
		`"versions": {"torch": "2.6", "transformers": "4.51"}`:  `optimizer is "muon"; torch.optim.Muon came with PyTorch 2.9, and versions name 2.6`,
		`"versions": {"torch": "2.15", "transformers": "5.22"}`: `optimizer "muon" of PyTorch 2.15 with transformers 5.22 is not modelled`,
	} {
		_, err := Parse([]byte(`{"model": "gpt2", "optimizer": "muon", ` + keys + `}`))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", keys, err, want)
		}
	}
}
