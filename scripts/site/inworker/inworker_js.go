package inworker

import (
	"syscall/js"

	"memorymark/internal/reply"
)

// Answer answers the worker's requests, whose bodies are what the page sent: bytes or a file,
// until the page is closed.
func Answer(ask func(method, target string, body js.Value) reply.Reply) {
	js.Global().Set("memorymarkAsk", js.FuncOf(func(_ js.Value, args []js.Value) any {
		r := ask(args[0].String(), args[1].String(), args[2])
		data := js.Global().Get("Uint8Array").New(len(r.Body))
		js.CopyBytesToJS(data, r.Body)
		return map[string]any{"status": r.Status, "type": r.Type, "body": data}
	}))
	js.Global().Call("memorymarkReady")
	select {}
}

// Bytes is what an ArrayBuffer holds.
func Bytes(buffer js.Value) []byte {
	view := js.Global().Get("Uint8Array").New(buffer)
	data := make([]byte, view.Get("length").Int())
	js.CopyBytesToGo(data, view)
	return data
}
