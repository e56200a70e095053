package measure

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
)

// What a process may have of the machine's memory, in machines that are folders.
func TestHostMemory(t *testing.T) {
	const meminfo = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    600 kB\n"
	for name, c := range map[string]struct {
		files       map[string]string
		total, free int64
	}{
		"no groups": {map[string]string{}, 1000 << 10, 600 << 10},
		"a container's group, where the cache counts as free": {map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "500000\n", "sys/fs/cgroup/memory.current": "300000\n",
			"sys/fs/cgroup/memory.stat": "anon 1\ninactive_file 100000\n",
		}, 500000, 300000},
		"the group above has the limit": {map[string]string{
			"proc/self/cgroup": "0::/slurm/job\n", "sys/fs/cgroup/slurm/memory.max": "400000\n", "sys/fs/cgroup/slurm/memory.current": "350000\n",
			"sys/fs/cgroup/slurm/job/memory.max": "max\n", "sys/fs/cgroup/slurm/job/memory.current": "1000\n",
		}, 400000, 50000},
		"the first version of groups": {map[string]string{
			"proc/self/cgroup": "5:cpu,cpuacct:/a\n4:memory:/a\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "200000\n", "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "150000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "900000\n",
		}, 200000, 50000},
	} {
		root := t.TempDir()
		c.files["proc/meminfo"] = meminfo
		for file, text := range c.files {
			path := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			testmachine.WriteFile(t, path, text)
		}
		run := exec.Command(testmachine.Python(t), "-c", "import sys; from memorymark_prober import host; print(*host.memory(sys.argv[1]))", root)
		run.Dir = "prober"
		out, err := run.CombinedOutput()
		if got, want := strings.TrimSpace(string(out)), fmt.Sprint(c.total, c.free); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, want)
		}
	}
}
