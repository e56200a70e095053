// Command release builds what is handed out: for each platform an archive with
// the static binary, manual pages and completions, a bill of materials made of
// what is linked into it, a Python wheel with the binary, and SHA256SUMS over
// all of them, which is signed. The same commit gives the same bytes.
//
//	go run ./scripts/release -version v0.1.0 -commit 0123abcd -out build/release -key ~/.ssh/release_ed25519
//	go run ./scripts/release -make-key -key ~/.ssh/release_ed25519
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// platforms are those that people train and look at their training on.
var platforms = []platform{
	{"linux", "amd64"},
	{"linux", "arm64"},
	{"darwin", "amd64"},
	{"darwin", "arm64"},
}

type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "-" + p.arch }

// chosen are the platforms that a name stands for: all, here, or one such as
// linux-amd64.
func chosen(name string) ([]platform, error) {
	if name == "all" {
		return platforms, nil
	}
	if name == "here" {
		name = platform{runtime.GOOS, runtime.GOARCH}.String()
	}
	i := slices.IndexFunc(platforms, func(p platform) bool { return p.String() == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no release for %s; the platforms are %v", name, platforms)
	}
	return platforms[i : i+1], nil
}

// budget is the maximum size of a binary: 40 MiB, of which the embedded queue is half, and 15 MiB for the source of models.
const budget = (40 + 15) << 20

// release is one version, on its way to a folder.
type release struct {
	version, commit    string
	date               time.Time // of the commit: that of every file in an archive
	out                string
	onlyWheels         bool
	platforms          []platform
	project, downloads string // addresses, of the project and of this release
	key                string // that signs it, "" for none
	parts              []part // that it holds of others
	licenses           []byte // of these
}

func main() {
	var r release
	flag.StringVar(&r.version, "version", "(devel)", "the version")
	flag.StringVar(&r.commit, "commit", "", "the commit")
	flag.StringVar(&r.out, "out", "build/release", "the folder to write")
	flag.BoolVar(&r.onlyWheels, "wheels", false, "build the Python wheels alone")
	of := flag.String("platform", "all", "the platform to build for, such as linux-amd64; here is this machine's")
	flag.StringVar(&r.project, "project", "https://memorymark.example/", "address of the project, for the Homebrew formula")
	flag.StringVar(&r.downloads, "downloads", "https://memorymark.example/releases/", "address of the folder that has the release, for the Homebrew formula")
	flag.StringVar(&r.key, "key", "", "the private key that signs it, as ssh-keygen makes one")
	making := flag.Bool("make-key", false, "make that key, and nothing else")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var err error
	if *making {
		err = makeKey(ctx, r.key)
	} else if r.platforms, err = chosen(*of); err == nil {
		err = r.run(ctx)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func (r *release) run(ctx context.Context) error {
	if _, err := os.Stat("web/dist/index.html"); err != nil {
		return fmt.Errorf("the page is not built, and a release has one: run make web")
	}
	err := r.checkKey()
	if err != nil {
		return err
	}
	if r.date, err = commitDate(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "memorymark-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	removeEmulator, err := buildEmulator(ctx, r.platforms)
	defer removeEmulator()
	if err != nil {
		return err
	}
	if r.parts, err = ofOthers(ctx); err != nil {
		return err
	}
	if r.licenses, err = licenses(r.parts); err != nil {
		return err
	}
	var papers []entry
	if !r.onlyWheels {
		if papers, err = r.papers(ctx, work); err != nil {
			return err
		}
	}
	var written []string
	steps := []func(context.Context, platform, string, []entry) ([]string, error){r.wheelOf} // what most people install
	if !r.onlyWheels {
		steps = append(steps, r.archiveOf)
	}
	for _, step := range steps {
		for _, p := range r.platforms {
			names, err := step(ctx, p, work, papers)
			if err != nil {
				return fmt.Errorf("%s: %w", p, err)
			}
			written = append(written, names...)
		}
	}
	if !r.onlyWheels && len(r.platforms) == len(homebrewBlocks) {
		name, err := r.formula()
		if err != nil {
			return err
		}
		written = append(written, name)
	}
	if err := r.writeSums(written); err != nil {
		return err
	}
	return r.sign(ctx)
}

// build builds the binary of a platform and checks its size.
func (r *release) build(ctx context.Context, p platform, file string) error {
	flags := "-s -w -X memorymark/internal/cli.version=" + r.version + " -X memorymark/internal/cli.commit=" + r.commit
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", file, "memorymark/cmd/memorymark")
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOAMD64=v1", "GOARM64=v8.0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if info.Size() > budget {
		return fmt.Errorf("the binary takes %d bytes, the budget is %d: find what grew (go tool nm -size -sort size), or raise it knowingly", info.Size(), int64(budget))
	}
	return nil
}

// paperNames are the files of the repository that every archive holds; docs/fleet.md
// installs those of deploy.
func paperNames() ([]string, error) {
	names, err := filepath.Glob("deploy/*")
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, ".go") })
	return append([]string{"LICENSE", "README.md", "CHANGELOG.md"}, names...), err
}

// papers returns what every archive holds in addition to the binary.
func (r *release) papers(ctx context.Context, work string) ([]entry, error) {
	here := filepath.Join(work, "here")
	if err := r.build(ctx, platform{runtime.GOOS, runtime.GOARCH}, here); err != nil {
		return nil, err
	}
	names, err := paperNames()
	if err != nil {
		return nil, err
	}
	out := []entry{{licensesName, 0o644, r.licenses}}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, entry{filepath.ToSlash(name), 0o644, data})
	}
	for shell, name := range map[string]string{"bash": "memorymark.bash", "zsh": "_memorymark", "fish": "memorymark.fish", "powershell": "memorymark.ps1"} {
		script, err := exec.CommandContext(ctx, here, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("completion %s: %w", shell, err)
		}
		out = append(out, entry{"completions/" + name, 0o644, script})
	}
	pages, err := manPages(ctx, here, filepath.Join(work, "man1"))
	return append(out, pages...), err
}

func manPages(ctx context.Context, binary, dir string) ([]entry, error) {
	if out, err := exec.CommandContext(ctx, binary, "man", dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("man: %w: %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		return nil, err
	}
	var out []entry
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		out = append(out, entry{"man/man1/" + filepath.Base(file), 0o644, data})
	}
	return out, nil
}

// binaryOf builds the binary of a platform, once, and returns it with its bill of materials.
func (r *release) binaryOf(ctx context.Context, p platform, work string) (data, bill []byte, err error) {
	binary := filepath.Join(work, p.String())
	if _, err := os.Stat(binary); err != nil {
		if err := r.build(ctx, p, binary); err != nil {
			return nil, nil, err
		}
	}
	if data, err = os.ReadFile(binary); err != nil {
		return nil, nil, err
	}
	bill, err = r.bill(binary, data)
	return data, bill, err
}

// wheelOf writes the wheel of a platform and returns its name.
func (r *release) wheelOf(ctx context.Context, p platform, work string, _ []entry) ([]string, error) {
	data, bill, err := r.binaryOf(ctx, p, work)
	if err != nil {
		return nil, err
	}
	wheel, err := r.wheel(p, data, bill)
	return []string{wheel}, err
}

// archiveOf writes the archive and the bill of materials of a platform and returns their
// names.
func (r *release) archiveOf(ctx context.Context, p platform, work string, papers []entry) ([]string, error) {
	data, bill, err := r.binaryOf(ctx, p, work)
	if err != nil {
		return nil, err
	}
	name := r.archiveName(p)
	var archive bytes.Buffer
	entries := append(slices.Clone(papers), entry{"memorymark", 0o755, data})
	if err := writeArchive(&archive, name, r.date, entries); err != nil {
		return nil, err
	}
	for file, content := range map[string][]byte{name + ".tar.gz": archive.Bytes(), name + ".cdx.json": bill} {
		if err := writeFile(filepath.Join(r.out, file), content); err != nil {
			return nil, err
		}
	}
	fmt.Printf("%-40s %5.1f MiB, unpacked binary %5.1f MiB\n", name+".tar.gz", mib(archive.Len()), mib(len(data)))
	return []string{name + ".tar.gz", name + ".cdx.json"}, nil
}

func (r *release) archiveName(p platform) string {
	return "memorymark-" + strings.TrimPrefix(r.version, "v") + "-" + p.String()
}

func mib(n int) float64 { return float64(n) / (1 << 20) }

// writeSums writes what sha256sum --check reads.
func (r *release) writeSums(names []string) error {
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), name)
	}
	return writeFile(filepath.Join(r.out, sumsName), []byte(b.String()))
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// commitDate is when the commit was made, or what SOURCE_DATE_EPOCH says.
func commitDate(ctx context.Context) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.CommandContext(ctx, "git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("no commit to date the release by; set SOURCE_DATE_EPOCH: %w", err)
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q; it must be seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
