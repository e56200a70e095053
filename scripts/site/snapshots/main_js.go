package main

import (
	"fmt"
	"io"
	"runtime/debug"
	"syscall/js"

	"memorymark/internal/dropped"
	"memorymark/internal/reply"
	"memorymark/scripts/site/inworker"
)

const (
	// memory is about how much snapshots may take: two may be compared, while a program in a
	// browser has 4 GiB at most.
	memory = 1 << 30
	// goal is where the garbage collector begins to do what it can.
	goal = 3 << 30
)

func main() {
	debug.SetMemoryLimit(goal)
	files := dropped.New(memory)
	inworker.Answer(func(method, target string, body js.Value) reply.Reply {
		if method != "POST" {
			return files.Ask(method, target, nil)
		}
		return files.Ask(method, target, &file{value: body, size: int64(body.Get("size").Int())})
	})
}

// file is a File of the browser. A worker may wait for what is in it.
type file struct {
	value js.Value
	size  int64
}

func (f *file) Size() int64 { return f.size }

// ReadAt reads a part of the file.
func (f *file) ReadAt(p []byte, offset int64) (n int, err error) {
	defer func() {
		if failed := recover(); failed != nil { // it was moved or changed, for example
			n, err = 0, fmt.Errorf("the browser cannot read the file: %v", failed)
		}
	}()
	end := min(offset+int64(len(p)), f.size)
	if offset >= end {
		return 0, io.EOF
	}
	part := js.Global().Get("FileReaderSync").New().Call("readAsArrayBuffer", f.value.Call("slice", offset, end))
	if n = copy(p, inworker.Bytes(part)); n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
