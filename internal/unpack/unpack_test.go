package unpack

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Code is not loaded from a folder that another user could have made or may change.
func TestOwner(t *testing.T) {
	files := Files{"a/code.py": []byte("pass")}
	if folder, err := files.Into(filepath.Join(t.TempDir(), "memorymark"), "kind", nil); err != nil {
		t.Fatalf("%s: %v", folder, err)
	}
	allow := func(path ...string) func(string) error {
		return func(base string) error {
			return os.Chmod(filepath.Join(append([]string{base}, path...)...), 0o777) //nolint:gosec // that is refused
		}
	}
	give := func(path ...string) func(string) error {
		return func(base string) error {
			return os.Lchown(filepath.Join(append([]string{base}, path...)...), 12345, 12345)
		}
	}
	kind := "kind-" + files.Sum()
	for name, change := range map[string]func(base string) error{
		"a writable folder above": allow(),
		"a writable cache":        allow("memorymark"),
		"a writable folder":       allow("memorymark", kind, "a"),
		"a writable file":         allow("memorymark", kind, "a", "code.py"),
		"another's folder above":  give(),
		"another's cache":         give("memorymark"),
		"another's folder":        give("memorymark", kind),
		"another's file":          give("memorymark", kind, "a", "code.py"),
		"another's file beside it": func(base string) error {
			return errors.Join(os.WriteFile(filepath.Join(base, "memorymark", kind, "x.so"), nil, 0o600), give("memorymark", kind, "x.so")(base))
		},
	} {
		t.Run(name, func(t *testing.T) {
			base := filepath.Join(t.TempDir(), "base")
			cache := filepath.Join(base, "memorymark")
			if _, err := files.Into(cache, "kind", nil); err != nil {
				t.Fatal(err)
			}
			if err := change(base); errors.Is(err, os.ErrPermission) {
				t.Skip("NOT TESTED: only root gives files away")
			} else if err != nil {
				t.Fatal(err)
			}
			var unsafe *UnsafeError
			if folder, err := files.Into(cache, "kind", nil); !errors.As(err, &unsafe) {
				t.Errorf("it is loaded from %s: %v", folder, err)
			}
		})
	}
}

// Without HOME the cache is in the temporary folder, under a name that anyone knows.
func TestCacheInTemporaryFolder(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("TMPDIR", t.TempDir())
	files := Files{"code.py": []byte("pass")}
	if _, err := files.Into(Cache(), "kind", nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(Cache()), 0o777); err != nil { //nolint:gosec // as who planted it would have it
		t.Fatal(err)
	}
	var unsafe *UnsafeError
	if _, err := files.Into(Cache(), "kind", nil); !errors.As(err, &unsafe) {
		t.Errorf("it is loaded: %v", err)
	}
}
