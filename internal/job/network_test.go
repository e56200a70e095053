package job

import (
	"net"
	"regexp"
	"sync"
	"testing"
)

// network is the wire between nodes and to them. It can cut off one node: what
// is sent to it and by it is held back until the connection is restored, as a network
// does that lost a switch.
type network struct {
	mu     sync.Mutex
	mended *sync.Cond
	cut    string // a node's name, "" if none is cut off
}

func newNetwork() *network {
	n := &network{}
	n.mended = sync.NewCond(&n.mu)
	return n
}

// isolate cuts off a node; "" restores the connection.
func (n *network) isolate(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cut = name
	n.mended.Broadcast()
}

// pass waits while either end is cut off.
func (n *network) pass(to, from string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.cut != "" && (n.cut == to || n.cut == from) {
		n.mended.Wait()
	}
}

// wire is a way to a node: an address that leads to another.
func (n *network) wire(t testing.TB, node, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go n.carry(c, node, address)
		}
	}()
	return l.Addr().String()
}

// dialer is how a node that dials another says who it is.
var dialer = regexp.MustCompile(`"server_name":"(n\d)"`)

// carry carries one connection. Who dialled is known once they have said so;
// clients never do.
func (n *network) carry(c net.Conn, node, address string) {
	defer c.Close()
	n.pass(node, "")
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	var mu sync.Mutex
	from := ""
	who := func(said []byte) string {
		mu.Lock()
		defer mu.Unlock()
		if m := dialer.FindSubmatch(said); m != nil && from == "" {
			from = string(m[1])
		}
		return from
	}
	copied := make(chan struct{}, 2)
	move := func(to, from net.Conn, dialled bool) {
		defer func() { copied <- struct{}{} }()
		buffer := make([]byte, 64<<10)
		for {
			k, err := from.Read(buffer)
			if k > 0 {
				var said []byte
				if dialled {
					said = buffer[:k]
				}
				n.pass(node, who(said))
				if _, err := to.Write(buffer[:k]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}
	go move(to, c, true)
	go move(c, to, false)
	<-copied
}
