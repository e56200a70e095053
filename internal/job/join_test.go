package job

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"testing"
)

// A server that dies while a worker joins leaves a question without an answer.
// The worker asks the next one.
func TestJoinSurvivesARestart(t *testing.T) {
	q := openForWorkers(t)
	address := dyingProxy(t, q.ListenAddr().String(), []byte("$JS.API"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := Join(ctx, JoinConfig{URL: "nats://" + address, Token: testToken})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// dyingProxy passes connections on, and cuts the first of them when a client
// says a word, which does not get through.
func dyingProxy(t *testing.T, target string, word []byte) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	var dies sync.Once
	serve := func(client net.Conn) {
		defer client.Close()
		server, err := net.Dial("tcp", target)
		if err != nil {
			return
		}
		defer server.Close()
		go io.Copy(client, server)
		buffer := make([]byte, 32<<10)
		for dead := false; !dead; {
			n, err := client.Read(buffer)
			if err != nil {
				return
			}
			if bytes.Contains(buffer[:n], word) {
				dies.Do(func() { dead = true })
			}
			if !dead {
				server.Write(buffer[:n])
			}
		}
	}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(client)
		}
	}()
	return listener.Addr().String()
}
