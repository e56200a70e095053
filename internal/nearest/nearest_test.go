package nearest

import (
	"strings"
	"testing"
)

func TestTo(t *testing.T) {
	known := []string{"batch", "sequence", "precision", "optimizer", "optimizer-impl", "checkpointing", "attention-mask"}
	for word, want := range map[string]string{
		"batch-size": "batch", "Batch": "batch", "bathc": "batch", "seq-len": "sequence", "gradient-checkpointing": "checkpointing",
		"optim": "optimizer", "attn-mask": "attention-mask", "optimiser": "optimizer", "learning-rate": "", "x": "",
	} {
		near := To(word, known)
		if want == "" && near != nil || want != "" && (near == nil || near[0] != want) {
			t.Errorf("near %q is %v, want %q first", word, near, want)
		}
	}
	if near := To("bert", []string{"bert-a", "bert-b", "bert-c", "bert-d", "bert-e"}); len(near) != 4 {
		t.Errorf("%v: want no more than four", near)
	}
}

// Of a choice, the value that was meant is named, and none that is only like it.
func TestMeant(t *testing.T) {
	known := []string{"fp32", "amp-bf16", "adamw", "adamw-8bit", "paged-adamw-8bit", "sgd"}
	for word, want := range map[string]string{
		"adamw8bit": "adamw-8bit", "ADAMW_8bit": "adamw-8bit", "paged_adamw_8bit": "paged-adamw-8bit", "AMP_BF16": "amp-bf16",
		"sdg": "sgd", "f32": "fp32", "fp8": "", "lamb": "", "": "",
	} {
		if got := Meant(word, known); got != want {
			t.Errorf("%q is taken for %q, want %q", word, got, want)
		}
	}
}

// A question of a megabyte would be compared for seconds.
func TestLongWords(t *testing.T) {
	long := "batch" + strings.Repeat("h", longestWord)
	if near := To(long, []string{"batch", long + "h"}); near != nil {
		t.Errorf("near to a word of %d letters: %.20v", len(long), near)
	}
}
