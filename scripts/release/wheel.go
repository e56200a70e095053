package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// wheelTags are what pip calls the platforms. The binary is static, and the
// emulated GPU's library asks for nothing younger than glibc 2.17.
var wheelTags = map[platform]string{
	{"linux", "amd64"}:  "manylinux_2_17_x86_64",
	{"linux", "arm64"}:  "manylinux_2_17_aarch64",
	{"darwin", "amd64"}: "macosx_11_0_x86_64",
	{"darwin", "arm64"}: "macosx_11_0_arm64",
}

// wheelBudget is the maximum size of a wheel, 15 MiB of it for the source of models.
const wheelBudget = (20 + 15) << 20

// pythonFolder holds the package that goes into every wheel.
const pythonFolder = "python/memorymark"

// wheel writes the wheel of a platform and returns its name: the package, and
// the binary as one of the scripts that pip installs.
func (r *release) wheel(p platform, binary, bill []byte) (string, error) {
	version := pythonVersion(r.version)
	entries, err := packageFiles()
	if err != nil {
		return "", err
	}
	license, err := os.ReadFile("LICENSE")
	if err != nil {
		return "", err
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		return "", err
	}
	info, tag := "memorymark-"+version+".dist-info/", "py3-none-"+wheelTags[p]
	entries = append(
		entries,
		entry{"memorymark-" + version + ".data/scripts/memorymark", 0o755, binary},
		entry{info + "licenses/LICENSE", 0o644, license},
		entry{info + "licenses/" + licensesName, 0o644, r.licenses},
		entry{info + "sboms/memorymark.cdx.json", 0o644, bill}, // where PEP 770 has it
		entry{info + "METADATA", 0o644, []byte(wheelMetadata(version) + "\n" + string(readme))},
		entry{info + "entry_points.txt", 0o644, []byte("[pytest11]\nmemorymark = memorymark.pytest_plugin\n")},
		entry{info + "WHEEL", 0o644, []byte("Wheel-Version: 1.0\nGenerator: memorymark\nRoot-Is-Purelib: false\nTag: " + tag + "\n")},
	)
	var file bytes.Buffer
	if err := writeWheel(&file, r.date, info+"RECORD", entries); err != nil {
		return "", err
	}
	name := fmt.Sprintf("memorymark-%s-%s.whl", version, tag)
	if file.Len() > wheelBudget {
		return "", fmt.Errorf("%s takes %d bytes, the budget is %d", name, file.Len(), int64(wheelBudget))
	}
	fmt.Printf("%-60s %5.1f MiB\n", name, mib(file.Len()))
	return name, writeFile(filepath.Join(r.out, name), file.Bytes())
}

// packageFiles are the files of the Python package.
func packageFiles() ([]entry, error) {
	var out []entry
	err := filepath.WalkDir(pythonFolder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".pyc") {
			return err
		}
		data, err := os.ReadFile(path)
		out = append(out, entry{filepath.ToSlash(strings.TrimPrefix(path, "python/")), 0o644, data})
		return err
	})
	return out, err
}

func wheelMetadata(version string) string {
	return "Metadata-Version: 2.4\n" +
		"Name: memorymark\n" +
		"Version: " + version + "\n" +
		"Summary: Will it fit? The GPU memory of a PyTorch training step, to the byte, with no GPU\n" +
		"License-Expression: MIT\n" +
		"License-File: LICENSE\n" +
		"License-File: " + licensesName + "\n" +
		"Requires-Python: >=3.9\n" +
		"Keywords: pytorch,gpu,memory,cuda,profiler,out-of-memory\n" +
		"Classifier: Environment :: Console\n" +
		"Classifier: Framework :: Pytest\n" +
		"Classifier: Intended Audience :: Developers\n" +
		"Classifier: Programming Language :: Python :: 3\n" +
		"Classifier: Typing :: Typed\n" +
		"Description-Content-Type: text/markdown\n"
}

// writeWheel writes entries and the record of them: a wheel is a zip file whose
// last file lists the others with their hashes.
func writeWheel(w *bytes.Buffer, date time.Time, record string, entries []entry) error {
	archive := zip.NewWriter(w)
	var lines strings.Builder
	for _, e := range entries {
		sum := sha256.Sum256(e.data)
		fmt.Fprintf(&lines, "%s,sha256=%s,%d\n", e.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(e.data))
	}
	fmt.Fprintf(&lines, "%s,,\n", record)
	for _, e := range append(entries, entry{record, 0o644, []byte(lines.String())}) {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: date}
		header.SetMode(e.mode)
		file, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := file.Write(e.data); err != nil {
			return err
		}
	}
	return archive.Close()
}

var (
	released  = regexp.MustCompile(`^v?(\d+\.\d+\.\d+)$`)
	described = regexp.MustCompile(`^v?(\d+\.\d+\.\d+)-(\d+)-g([0-9a-f]+)(-dirty)?$`)
)

// pythonVersion is a version of git's as PEP 440 has it: what follows a release
// is a development version of the next one.
func pythonVersion(version string) string {
	if m := released.FindStringSubmatch(version); m != nil {
		return m[1]
	}
	if m := described.FindStringSubmatch(version); m != nil {
		return m[1] + ".post" + m[2] + "+g" + m[3]
	}
	local := regexp.MustCompile(`[^0-9a-zA-Z]+`).ReplaceAllString(version, ".")
	return "0.0.0+" + strings.ToLower(strings.Trim(local, "."))
}
