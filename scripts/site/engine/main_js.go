package main

import (
	"context"
	"syscall/js"

	"memorymark/internal/browser"
	"memorymark/internal/reply"
	"memorymark/scripts/site/inworker"
)

func main() {
	inworker.Answer(func(method, target string, body js.Value) reply.Reply {
		return browser.Ask(context.Background(), method, target, inworker.Bytes(body))
	})
}
