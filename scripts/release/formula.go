package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// formulaName is the file of a Homebrew formula: copied into the folder Formula of a tap, it
// installs the archives of this release.
const formulaName = "memorymark.rb"

// homebrewBlocks are what a formula calls the platforms.
var homebrewBlocks = []struct {
	system, processor string
	platform          platform
}{
	{"macos", "arm", platform{"darwin", "arm64"}},
	{"macos", "intel", platform{"darwin", "amd64"}},
	{"linux", "arm", platform{"linux", "arm64"}},
	{"linux", "intel", platform{"linux", "amd64"}},
}

// formula writes the formula of a release of all platforms and returns its name.
func (r *release) formula() (string, error) {
	version := strings.TrimPrefix(r.version, "v")
	var b strings.Builder
	fmt.Fprintf(&b, `class Memorymark < Formula
  desc "GPU memory of a PyTorch training step, to the byte, with no GPU"
  homepage %q
  version %q
  license "MIT"
`, r.project, version)
	for i, block := range homebrewBlocks {
		name := r.archiveName(block.platform) + ".tar.gz"
		data, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return "", err
		}
		if i%2 == 0 {
			fmt.Fprintf(&b, "\n  on_%s do\n", block.system)
		}
		fmt.Fprintf(&b, "    on_%s do\n      url %q\n      sha256 \"%x\"\n    end\n", block.processor, r.downloads+name, sha256.Sum256(data))
		if i%2 == 1 {
			b.WriteString("  end\n")
		}
	}
	b.WriteString(`
  def install
    bin.install "memorymark"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/memorymark.bash" => "memorymark"
    zsh_completion.install "completions/_memorymark"
    fish_completion.install "completions/memorymark.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/memorymark version")
    assert_match "BERT base", shell_output("#{bin}/memorymark predict bert --gpu a10")
  end
end
`)
	return formulaName, writeFile(filepath.Join(r.out, formulaName), []byte(b.String()))
}
