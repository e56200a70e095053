package request

import (
	"fmt"
	"slices"
	"strings"
)

// Format is how one scheduler is asked.
type Format struct {
	Name  string // of the flag
	Title string
	Write func(*Need) string
}

// Formats are all formats.
var Formats = []Format{
	{"kubernetes", "Kubernetes, with labels of GPU feature discovery", (*Need).kubernetes},
	{"dra", "Kubernetes, by dynamic resource allocation", (*Need).dra},
	{"hami", "HAMi, which shares GPUs by memory", (*Need).hami},
	{"kai", "KAI scheduler, which shares GPUs by memory", (*Need).kai},
	{"slurm", "Slurm", (*Need).slurm},
	{"skypilot", "SkyPilot", (*Need).skypilot},
}

// Names are the names of all formats.
func Names() []string {
	var names []string
	for _, f := range Formats {
		names = append(names, f.Name)
	}
	return names
}

// Find returns the format of a name.
func Find(name string) (Format, bool) {
	i := slices.IndexFunc(Formats, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return Format{}, false
	}
	return Formats[i], true
}

// kubernetes asks for whole GPUs, on nodes whose label nvidia.com/gpu.memory (in MiB)
// is large enough. Gt compares whole numbers.
func (n *Need) kubernetes() string {
	return fmt.Sprintf(`# in the pod's spec
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        - matchExpressions:
            - {key: nvidia.com/gpu.memory, operator: Gt, values: ["%d"]}
containers:
  - name: train
    resources:
      limits:
        nvidia.com/gpu: %d
`, n.MiB-1, n.GPUs)
}

// dra is a claim of resource.k8s.io/v1, for the driver gpu.nvidia.com.
func (n *Need) dra() string {
	return fmt.Sprintf(`apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata:
  name: training-gpu
spec:
  spec:
    devices:
      requests:
        - name: gpu
          exactly:
            deviceClassName: gpu.nvidia.com
            count: %d
            selectors:
              - cel:
                  expression: device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("%dMi")) >= 0
# and in the pod's spec
# resourceClaims:
#   - {name: gpu, resourceClaimTemplateName: training-gpu}
# containers:
#   - name: train
#     resources: {claims: [{name: gpu}]}
`, n.GPUs, n.MiB)
}

// sharedMiB is what a job needs where GPUs are shared: no share has the memory that the driver keeps.
func (n *Need) sharedMiB() int64 { return n.MiB - int64(n.Driver>>20) }

// hami asks for a share of a GPU's memory, in MiB; HAMi counts the context, too.
func (n *Need) hami() string {
	return fmt.Sprintf(`# in the pod's spec
containers:
  - name: train
    resources:
      limits:
        nvidia.com/gpu: %d
        nvidia.com/gpumem: %d
`, n.GPUs, n.sharedMiB())
}

// kai asks for a share of a GPU's memory, in MiB.
func (n *Need) kai() string {
	devices := ""
	if n.GPUs > 1 {
		devices = fmt.Sprintf("\n    gpu-fraction-num-devices: %q", fmt.Sprint(n.GPUs))
	}
	return fmt.Sprintf(`# in the pod
metadata:
  labels:
    kai.scheduler/queue: default-queue
  annotations:
    gpu-memory: "%d"%s
spec:
  schedulerName: kai-scheduler
`, n.sharedMiB(), devices)
}

// slurm has no memory of GPUs to ask for: the features of a site name its cards.
func (n *Need) slurm() string {
	var b strings.Builder
	fmt.Fprintf(&b, "#SBATCH --gres=gpu:%d\n", n.GPUs)
	fmt.Fprintf(&b, "# each with at least %d MiB; if your nodes have the cards as features:\n", n.MiB)
	fmt.Fprintf(&b, "#SBATCH --constraint=\"%s\"\n", strings.Join(n.Cards, "|"))
	return b.String()
}

// skyNames are what SkyPilot calls cards.
var skyNames = map[string]string{
	"t4": "T4", "v100-16gb": "V100", "v100-32gb": "V100-32GB", "a10": "A10", "a10g": "A10G", "a40": "A40", "a100-40gb": "A100", "a100-80gb": "A100-80GB",
	"l4": "L4", "l40": "L40", "l40s": "L40S", "rtx-3090": "RTX3090", "rtx-4090": "RTX4090", "rtx-5090": "RTX5090", "rtx-a6000": "RTXA6000",
	"rtx-6000-ada": "RTX6000-Ada", "h100": "H100", "h200": "H200", "gh200": "GH200", "b200": "B200",
}

// skypilot names the cards: a set is one of them, whichever is cheapest.
func (n *Need) skypilot() string {
	var b strings.Builder
	b.WriteString("resources:\n  accelerators: {")
	var names []string
	for _, id := range n.Cards {
		if name, ok := skyNames[id]; ok {
			names = append(names, fmt.Sprintf("%q: %d", name, n.GPUs))
		}
	}
	b.WriteString(strings.Join(names, ", ") + "}\n")
	return b.String()
}
