package main

import (
	"context"
	"syscall/js"

	"memorymark/internal/browser"
)

func main() {
	js.Global().Set("memorymarkAsk", js.FuncOf(func(_ js.Value, args []js.Value) any {
		body := make([]byte, args[2].Get("length").Int())
		js.CopyBytesToGo(body, args[2])
		a := browser.Ask(context.Background(), args[0].String(), args[1].String(), body)
		data := js.Global().Get("Uint8Array").New(len(a.Body))
		js.CopyBytesToJS(data, a.Body)
		return map[string]any{"status": a.Status, "type": a.Type, "body": data}
	}))
	js.Global().Call("memorymarkReady")
	select {} // until the page is closed
}
