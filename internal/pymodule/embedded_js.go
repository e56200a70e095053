package pymodule

import (
	"errors"
	"syscall/js"
)

// builtTrees asks the page for the archive when the first model needs it: most do not,
// and it is three times as large as the program. The page's function waits, which a worker may.
// It has those of the reference version alone.
func builtTrees(version string) ([]byte, error) {
	load := js.Global().Get("memorymarkTrees")
	if version != "" || load.Type() != js.TypeFunction {
		return nil, nil //nolint:nilnil // a page without the trees
	}
	archive := load.Invoke()
	if archive.IsNull() || archive.IsUndefined() {
		return nil, errors.New("the source of this model could not be loaded; it needs the network once")
	}
	data := make([]byte, archive.Get("length").Int())
	js.CopyBytesToGo(data, archive)
	return data, nil
}
