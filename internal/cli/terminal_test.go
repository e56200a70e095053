//go:build !race

package cli

import (
	"html"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"memorymark/internal/testmachine"
)

var (
	pictureScene = regexp.MustCompile(`(?s)<g class="scene.*?</g>\n</g>`)
	pictureText  = regexp.MustCompile(`(?m)^<text [^>]*>(.*)</text>$`)
	pictureSpan  = regexp.MustCompile(`</?tspan[^>]*>`)
)

// TestTerminalPicture runs the commands of the moving picture in the README, and
// looks for each line of the picture in what they print.
func TestTerminalPicture(t *testing.T) {
	picture := testmachine.ReadFile(t, filepath.Join(root, "docs/images/terminal.svg"))
	t.Setenv("PATH", filepath.Dir(testmachine.Python(t))+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("COLUMNS", "92")
	t.Chdir(filepath.Join(root, "examples"))
	scenes := pictureScene.FindAllString(string(picture), -1)
	if len(scenes) != 2 {
		t.Fatalf("the picture has %d scenes", len(scenes))
	}
	for i, scene := range scenes {
		var lines []string
		for _, m := range pictureText.FindAllStringSubmatch(scene, -1) {
			lines = append(lines, html.UnescapeString(pictureSpan.ReplaceAllString(m[1], "")))
		}
		output, err := os.Create(filepath.Join(t.TempDir(), "output"))
		if err != nil {
			t.Fatal(err)
		}
		code := Run(t.Context(), strings.Fields(strings.TrimPrefix(lines[0], "$ "))[1:], strings.NewReader(""), output, output)
		if want := []int{exitOutOfMemory, exitOK}[i]; code != want {
			t.Errorf("%s ended with %d, want %d", lines[0], code, want)
		}
		printed := testmachine.ReadFile(t, output.Name())
		for _, line := range lines[1:] {
			if !strings.Contains(string(printed), strings.TrimSuffix(line, "…")) {
				t.Errorf("%s prints\n%s\nthe picture shows %q; make pictures draws it again", lines[0], printed, line)
			}
		}
	}
}

// TestTimelinePicture holds the README's picture of a timeline to what the
// program draws.
func TestTimelinePicture(t *testing.T) {
	folder := t.TempDir()
	copyExamples(t, folder)
	shown := decodePNG(t, filepath.Join(root, "docs/images/timeline.png"))
	t.Chdir(folder)
	printed(t, "memorymark snapshot timeline examples/gpt2_oom.pickle.xz -o timeline.png")
	if !reflect.DeepEqual(decodePNG(t, "timeline.png"), shown) {
		t.Error("docs/images/timeline.png is not what the program draws; make pictures draws it again")
	}
}

func decodePNG(t *testing.T, path string) image.Image {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return picture
}
