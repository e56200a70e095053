// Command site writes MemoryMark as plain files, for any host: the page with the predicted
// engine compiled to WebAssembly, a page for each of some models on some cards, the guide,
// and what search engines and agents read. "make site" runs it.
package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// Those that people ask about most; -models all and -cards all take the catalogs.
const (
	usualModels = "llama-3.1-8b,llama-3.2-1b,llama-3.2-3b,qwen3-8b,qwen3-4b,qwen2.5-7b,mistral-7b,gemma-2-9b,gpt2,bert"
	usualCards  = "rtx-4090,rtx-3090,rtx-5090,rtx-4060-ti-16gb,t4,l4,a10,a100-40gb,a100-80gb,h100"
)

//go:embed static
var static embed.FS

type site struct {
	out, url, version string
	models            []*workload.CatalogModel
	cards             []*gpu.Card
	mu                sync.Mutex
	addresses         []string // of pages, for the sitemap
}

func main() {
	s := &site{}
	flag.StringVar(&s.out, "out", "build/site", "folder to write")
	flag.StringVar(&s.url, "url", "https://memorymark.example/", "address of the site, for previews and the sitemap")
	flag.StringVar(&s.version, "version", "devel", "version, which renews what browsers keep")
	page := flag.String("page", "build/site-page", "the built page")
	models := flag.String("models", usualModels, "models that have pages, or all")
	cards := flag.String("cards", usualCards, "cards that have pages, or all")
	flag.Parse()
	if err := s.choose(*models, *cards); err != nil {
		fail(err)
	}
	for _, step := range []func() error{
		func() error { return s.writePage(*page) }, func() error { return s.writeEngine(context.Background()) }, s.writeAnswers, s.writeGuide, s.writeTexts, s.writeWorker,
	} {
		if err := step(); err != nil {
			fail(err)
		}
	}
	fmt.Printf("%s: %d pages\n", s.out, len(s.addresses))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "site:", err)
	os.Exit(1)
}

func (s *site) choose(models, cards string) error {
	s.url = strings.TrimSuffix(s.url, "/") + "/"
	s.models, s.cards = workload.Models(), gpu.All()
	if models != "all" {
		s.models = nil
		for _, id := range strings.Split(models, ",") {
			m, err := workload.FindModel(id)
			if err != nil {
				return err
			}
			s.models = append(s.models, m)
		}
	}
	if cards != "all" {
		s.cards = nil
		for _, id := range strings.Split(cards, ",") {
			c, err := gpu.Find(id)
			if err != nil {
				return err
			}
			s.cards = append(s.cards, c)
		}
	}
	return nil
}

func (s *site) write(name string, data []byte) error {
	file := filepath.Join(s.out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// listed writes a page that search engines should find.
func (s *site) listed(name string, data []byte) error {
	s.mu.Lock()
	s.addresses = append(s.addresses, strings.TrimSuffix(name, "index.html"))
	s.mu.Unlock()
	return s.write(name, data)
}

// appPages are addresses of the page's own, each a copy of its file: a host of plain files
// knows no others.
var appPages = []string{"", "cards/", "settings/", "plan/", "timeline/"}

// relative matches the page's references to its own files.
var relative = regexp.MustCompile(`(href|src)="\./`)

// writePage copies the built page. Its copies in folders say how far up the site is.
func (s *site) writePage(built string) error {
	index, err := os.ReadFile(filepath.Join(built, "index.html"))
	if err != nil {
		return fmt.Errorf("%w; make site builds the page first", err)
	}
	err = filepath.WalkDir(built, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "index.html" {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(built, file)
		if err != nil {
			return err
		}
		return s.write(filepath.ToSlash(name), data)
	})
	if err != nil {
		return err
	}
	for _, at := range appPages {
		if err := s.listed(at+"index.html", s.appPage(index, at)); err != nil {
			return err
		}
	}
	return nil
}

// withoutScript is what the start page says where there is no JavaScript.
const withoutScript = `<noscript><p>MemoryMark computes its answers in this page, which needs JavaScript. Without it, read ` +
	`<a href="%[1]sm/">the answers for common models and cards</a> and <a href="%[1]sdocs/">the guide</a>.</p></noscript>`

func (s *site) appPage(index []byte, at string) []byte {
	up := upFrom(at)
	text := relative.ReplaceAllString(string(index), `$1="`+up)
	text = strings.Replace(text, "<head>", fmt.Sprintf("<head>\n    <meta name=\"memorymark-site\" content=\"%s\" />", up), 1)
	text = strings.Replace(text, "</head>", s.previewTags(at, "preview.png")+"  </head>", 1)
	text = strings.Replace(text, `<div id="root"></div>`, `<div id="root"></div>`+fmt.Sprintf(withoutScript, up), 1)
	register := fmt.Sprintf("<script>if ('serviceWorker' in navigator) navigator.serviceWorker.register('%ssw.js');</script>\n  </body>", up)
	return []byte(strings.Replace(text, "</body>", register, 1))
}

// upFrom is the way from a page to the site's folder.
func upFrom(at string) string {
	if n := strings.Count(at, "/"); n > 0 {
		return strings.Repeat("../", n)
	}
	return "./"
}

func (s *site) previewTags(at, picture string) string {
	return fmt.Sprintf("  <link rel=\"canonical\" href=\"%[1]s%[2]s\" />\n    <meta property=\"og:url\" content=\"%[1]s%[2]s\" />\n"+
		"    <meta property=\"og:image\" content=\"%[1]s%[3]s\" />\n    <meta name=\"twitter:card\" content=\"summary_large_image\" />\n", s.url, at, picture)
}

// smaller are packages that need not be as fast as they can: they ask others to simulate.
// Not inlining their functions makes the program 4 % smaller.
var smaller = []string{"plan", "analysis", "recipe", "change", "workload", "hfconfig", "gpu", "measure", "emulate", "sandbox", "unpack", "browser", "models", "pymodule", "torch"}

// programs are what answers in the browser: predictions, and questions about snapshots.
var programs = []string{"engine", "snapshots"}

// writeEngine compiles the programs that answer in the browser. The source of models is a
// file of its own, since only some questions need it.
func (s *site) writeEngine(ctx context.Context) error {
	args := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w"}
	for _, p := range smaller {
		args = append(args, "-gcflags=memorymark/internal/"+p+"=-l")
	}
	for _, name := range programs {
		file := filepath.Join(s.out, "engine", name+".wasm")
		build := exec.CommandContext(ctx, "go", append(slices.Clone(args), "-o", file, "./scripts/site/"+name)...)
		build.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("compile the program %s: %w\n%s", name, err, out)
		}
	}
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	for to, from := range map[string]string{
		"wasm_exec.js":     filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"),
		"transformers.zip": "internal/pymodule/trees/transformers.zip",
	} {
		data, err := os.ReadFile(from)
		if err != nil {
			return fmt.Errorf("%w; make models fetches the source of models", err)
		}
		if err := s.write("engine/"+to, data); err != nil {
			return err
		}
	}
	worker, err := static.ReadFile("static/engine.js")
	if err != nil {
		return err
	}
	return s.write("engine/engine.js", worker)
}

// writeTexts writes what programs read: the sitemap, robots.txt, llms.txt and the skill.
func (s *site) writeTexts() error {
	for _, name := range []string{"llms.txt", "SKILL.md"} {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := s.write(name, data); err != nil {
			return err
		}
	}
	slices.Sort(s.addresses)
	var b bytes.Buffer
	b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n")
	for _, a := range s.addresses {
		fmt.Fprintf(&b, "<url><loc>%s%s</loc></url>\n", s.url, a)
	}
	b.WriteString("</urlset>\n")
	if err := s.write("sitemap.xml", b.Bytes()); err != nil {
		return err
	}
	return s.write("robots.txt", []byte("User-agent: *\nAllow: /\nSitemap: "+s.url+"sitemap.xml\n"))
}

// writeWorker writes the service worker, which keeps the page and the engine from the first
// visit on.
func (s *site) writeWorker() error {
	files := []string{"engine/engine.js", "engine/engine.wasm", "engine/snapshots.wasm", "engine/wasm_exec.js", "engine/transformers.zip"}
	for _, at := range appPages {
		files = append(files, "./"+at)
	}
	err := filepath.WalkDir(s.out, func(file string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(s.out, file)
		if err == nil && !d.IsDir() && (strings.HasPrefix(name, "assets") || path.Ext(name) == ".svg" || name == "theme.js") {
			files = append(files, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		return err
	}
	source, err := static.ReadFile("static/sw.js")
	if err != nil {
		return err
	}
	list, err := json.Marshal(files)
	if err != nil {
		return err
	}
	text := strings.NewReplacer("VERSION", s.version, "FILES", string(list)).Replace(strings.SplitN(string(source), "\n", 3)[2])
	return s.write("sw.js", []byte("// Written by make site.\n"+text))
}
