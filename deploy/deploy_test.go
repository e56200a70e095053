// Package deploy_test holds what is shipped for systemd, Kubernetes, Slurm and
// public CI to what docs/security.md promises.
package deploy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"memorymark/internal/testmachine"

	"go.yaml.in/yaml/v3"
)

func read(t *testing.T, name string) string {
	t.Helper()
	data := testmachine.ReadFile(t, name)
	return string(data)
}

type pod struct {
	Automount *bool          `yaml:"automountServiceAccountToken"`
	Security  map[string]any `yaml:"securityContext"`
	Init      []container    `yaml:"initContainers"`
	Main      []container    `yaml:"containers"`
}

type container struct {
	Name, Image   string
	Command, Args []string
	Resources     struct{ Limits map[string]string }
	Security      map[string]any `yaml:"securityContext"`
	Liveness      probe          `yaml:"livenessProbe"`
	Readiness     probe          `yaml:"readinessProbe"`
}

type probe struct {
	HTTP struct{ Path, Scheme string } `yaml:"httpGet"`
}

// pods are those of kubernetes.yaml.
func pods(t *testing.T) (out []pod) {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(read(t, "kubernetes.yaml")))
	for {
		var object struct {
			Spec struct{ Template struct{ Spec pod } }
		}
		if err := d.Decode(&object); errors.Is(err, io.EOF) && len(out) > 0 {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if p := object.Spec.Template.Spec; p.Main != nil {
			out = append(out, p)
		}
	}
}

// containers are those of kubernetes.yaml.
func containers(t *testing.T) (out []container) {
	t.Helper()
	for _, p := range pods(t) {
		out = slices.Concat(out, p.Init, p.Main)
	}
	return out
}

// TestEncrypted keeps tokens from crossing a network in the clear: what listens
// beyond loopback has a certificate, and workers join by TLS.
func TestEncrypted(t *testing.T) {
	commands := map[string]string{}
	for _, name := range []string{"memorymark.service", "memorymark-worker.service"} {
		commands[name] = regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindString(read(t, name))
	}
	for _, c := range containers(t) {
		commands["kubernetes "+c.Name] = strings.Join(append(c.Command, c.Args...), " ")
	}
	served, joined := 0, 0
	for where, line := range commands {
		if strings.Contains(line, " serve --") { // and not "serve token"
			served++
			loopback := strings.Contains(line, "--listen 127.0.0.1:")
			encrypted := strings.Contains(line, "--tls-cert ") && strings.Contains(line, "--tls-key ")
			if !loopback && !encrypted {
				t.Errorf("%s listens beyond loopback without TLS: %s", where, line)
			}
		}
		if strings.Contains(line, " worker ") {
			joined++
			if !strings.Contains(line, "--join https://") {
				t.Errorf("%s joins without TLS: %s", where, line)
			}
		}
	}
	if served != 2 || joined != 2 {
		t.Errorf("%d servers and %d workers were found", served, joined)
	}
	for join, ok := range map[string]bool{"http://server:5001": false, "https://server:5001": true} {
		script := strings.Replace(read(t, "worker.sbatch"), "srun ", "echo srun ", 1)
		c := exec.CommandContext(t.Context(), "bash", "-s")
		c.Stdin, c.Env = strings.NewReader(script), append(os.Environ(), "MEMORYMARK_JOIN="+join, "SLURM_JOB_ID=1", "HOME=/nowhere")
		if out, err := c.CombinedOutput(); (err == nil) != ok {
			t.Errorf("worker.sbatch to %s: %v: %s", join, err, out)
		}
	}
}

// TestMemoryIsLimited keeps one program from taking a machine's memory.
func TestMemoryIsLimited(t *testing.T) {
	for _, name := range []string{"memorymark.service", "memorymark-worker.service"} {
		if !regexp.MustCompile(`(?m)^MemoryMax=\S+$`).MatchString(read(t, name)) {
			t.Errorf("%s has no MemoryMax", name)
		}
	}
	if !strings.Contains(read(t, "worker.sbatch"), "#SBATCH --mem=") {
		t.Error("worker.sbatch has no --mem")
	}
	all := containers(t)
	for _, c := range all {
		if c.Resources.Limits["memory"] == "" || c.Security["allowPrivilegeEscalation"] != false {
			t.Errorf("kubernetes.yaml: %s has no limit of memory, or may get rights: %+v", c.Name, c)
		}
	}
	if len(all) != 3 {
		t.Errorf("%d containers were found", len(all))
	}
}

// TestPodsAreRestricted holds pods to the Pod Security Standard "restricted", with
// read-only files, and without a token for the cluster.
func TestPodsAreRestricted(t *testing.T) {
	for _, p := range pods(t) {
		seccomp, _ := p.Security["seccompProfile"].(map[string]any)
		if p.Security["runAsNonRoot"] != true || p.Security["runAsUser"] == 0 || seccomp["type"] != "RuntimeDefault" {
			t.Errorf("%s: %v", p.Main[0].Name, p.Security)
		}
		if p.Automount == nil || *p.Automount {
			t.Errorf("%s gets a token for the cluster", p.Main[0].Name)
		}
		for _, c := range slices.Concat(p.Init, p.Main) {
			drop, _ := c.Security["capabilities"].(map[string]any)
			if c.Security["allowPrivilegeEscalation"] != false || c.Security["readOnlyRootFilesystem"] != true || fmt.Sprint(drop["drop"]) != "[ALL]" {
				t.Errorf("%s: %v", c.Name, c.Security)
			}
		}
	}
}

// TestImages has every image of kubernetes.yaml built by a file next to it, from
// what an archive holds, for the user that the pod runs as.
func TestImages(t *testing.T) {
	for _, p := range pods(t) {
		for _, c := range slices.Concat(p.Init, p.Main) {
			text, found := "", ""
			for _, name := range []string{"Containerfile", "worker.Containerfile"} {
				if text = read(t, name); strings.Contains(text, " -t "+c.Image+" .\n") {
					found = name
					break
				}
			}
			if found == "" {
				t.Errorf("nothing builds %s", c.Image)
				continue
			}
			if user := fmt.Sprintf("\nUSER %v:%v\n", p.Security["runAsUser"], p.Security["runAsGroup"]); !strings.Contains(text, user) {
				t.Errorf("%s has another user than the pod: %s", found, user)
			}
			for _, copied := range regexp.MustCompile(`(?m)^COPY (.*) \S+$`).FindAllStringSubmatch(text, -1) {
				for _, file := range strings.Fields(copied[1]) {
					if !slices.Contains([]string{"memorymark", "LICENSE", "THIRD-PARTY-LICENSES"}, file) {
						t.Errorf("%s copies %s, which no archive has", found, file)
					}
				}
			}
			if regexp.MustCompile(`(?m)^FROM [^$\s:]+(:latest)?$`).MatchString(text) || strings.HasSuffix(c.Image, ":latest") {
				t.Errorf("%s or its base is another one every day", c.Image)
			}
		}
	}
}

// TestNoSecretsInLogs keeps tokens out of what everyone with the right to read
// logs can read.
func TestNoSecretsInLogs(t *testing.T) {
	for _, c := range containers(t) {
		line := strings.Join(append(c.Command, c.Args...), " ")
		if strings.Contains(line, "token create") && !regexp.MustCompile(`umask 077;.*token create [^>|;]* > /data/`).MatchString(line) {
			t.Errorf("kubernetes.yaml: %s prints a token: %s", c.Name, line)
		}
	}
	for _, name := range []string{"kubernetes.yaml", "memorymark.service", "memorymark-worker.service", "worker.sbatch"} {
		if regexp.MustCompile(`mm_[A-Za-z0-9]|MEMORYMARK_TOKEN=|--token `).MatchString(read(t, name)) {
			t.Errorf("%s holds a token, or shows one to every user of the machine", name)
		}
	}
	if strings.Contains(read(t, "../docs/fleet.md"), "kubectl logs") {
		t.Error("docs/fleet.md fetches something from a log")
	}
}

// TestProbes has Kubernetes ask what is answered under any load and without a
// token, which server.TestRequestsAreBounded tries.
func TestProbes(t *testing.T) {
	found := false
	for _, c := range containers(t) {
		if !slices.Contains(c.Args, "serve") {
			continue
		}
		found = true
		for path, p := range map[string]probe{"/health": c.Liveness, "/ready": c.Readiness} {
			if p.HTTP.Path != path || p.HTTP.Scheme != "HTTPS" {
				t.Errorf("it asks %+v, want %s", p, path)
			}
		}
	}
	if !found {
		t.Error("no server was found")
	}
}

// TestPublicCI holds the workflow to what it is for: the checks of make test, and
// a look for known vulnerabilities, with no rights to change anything.
func TestPublicCI(t *testing.T) {
	text := read(t, "../.github/workflows/ci.yml")
	var workflow struct {
		On          map[string]any
		Permissions map[string]string
		Jobs        map[string]struct {
			Steps []struct{ Run, Uses string }
		}
	}
	if err := yaml.NewDecoder(bytes.NewReader([]byte(text))).Decode(&workflow); err != nil {
		t.Fatal(err)
	}
	var runs []string
	for _, job := range workflow.Jobs {
		for _, s := range job.Steps {
			runs = append(runs, s.Run)
			if s.Uses != "" && !regexp.MustCompile(`^actions/checkout@[0-9a-f]{40}$`).MatchString(s.Uses) {
				t.Errorf("it runs somebody else's code, or code that may change: %s", s.Uses)
			}
		}
	}
	for _, want := range []string{"make test", "make vulnerabilities"} {
		if !slices.Contains(runs, want) {
			t.Errorf("it does not run %s: %q", want, runs)
		}
	}
	if len(workflow.Permissions) != 1 || workflow.Permissions["contents"] != "read" {
		t.Errorf("it may %v", workflow.Permissions)
	}
	if workflow.On["schedule"] == nil {
		t.Error("holes become known between changes, and nobody looks then")
	}
	makefile := read(t, "../Makefile")
	for _, want := range []string{"govulncheck@$(GOVULNCHECK)", "audit --omit=dev", "pip-audit --strict --require-hashes", "pip install --quiet --no-deps --require-hashes"} {
		if !strings.Contains(makefile, want) {
			t.Errorf("the Makefile has no %s", want)
		}
	}
}
