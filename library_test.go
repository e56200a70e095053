package memorymark_test

import (
	"os"
	"os/exec"
	"testing"
)

// Another module imports the package as others would, and runs.
func TestImportedByOthers(t *testing.T) {
	cmd := exec.Command("go", "run", ".", `{"model": "gpt2", "precision": "amp-fp16"}`, "../truth/snapshots/gpt2_oom.pickle.xz")
	cmd.Dir = "testdata/scheduler"
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if want := "t4: 64\na100-80gb: 419\n1 out of memory\n"; err != nil || string(out) != want {
		t.Errorf("%v: %s", err, out)
	}
}
