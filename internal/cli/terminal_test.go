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
)

var (
	pictureScene = regexp.MustCompile(`(?s)<g class="scene.*?</g>\n</g>`)
	pictureText  = regexp.MustCompile(`(?m)^<text [^>]*>(.*)</text>$`)
	pictureSpan  = regexp.MustCompile(`</?tspan[^>]*>`)
)

// TestTerminalPicture runs the commands of the moving picture in the README and
// holds it to what they print.
func TestTerminalPicture(t *testing.T) {
	picture, err := os.ReadFile(filepath.Join(root, "docs/images/terminal.svg"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	copyExamples(t, folder)
	t.Chdir(folder)
	t.Setenv("COLUMNS", "92")
	scenes := pictureScene.FindAllString(string(picture), -1)
	if len(scenes) != 3 {
		t.Fatalf("the picture has %d scenes", len(scenes))
	}
	for _, scene := range scenes {
		var lines []string
		for _, m := range pictureText.FindAllStringSubmatch(scene, -1) {
			lines = append(lines, html.UnescapeString(pictureSpan.ReplaceAllString(m[1], "")))
		}
		command := strings.TrimPrefix(lines[0], "$ ")
		for lines = lines[1:]; strings.HasSuffix(command, `\`); lines = lines[1:] {
			command = strings.TrimSuffix(command, `\`) + strings.TrimPrefix(lines[0], "> ")
		}
		got := regexp.MustCompile(`\n+`).ReplaceAllString(printed(t, command), "\n")
		if shown := strings.Join(lines, "\n") + "\n"; !strings.HasPrefix(got, shown) {
			t.Errorf("%s prints\n%s\nthe picture shows\n%s\nmake pictures draws it again", command, got, shown)
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
