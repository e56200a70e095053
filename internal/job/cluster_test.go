package job

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The test binary is also what tests start as processes of their own, to kill
// them: a node of a cluster, or a whole server.
const (
	nodeVariable   = "MEMORYMARK_TEST_NODE"
	serverVariable = "MEMORYMARK_TEST_SERVER"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(nodeVariable) != "":
		beNode(os.Getenv(nodeVariable))
	case os.Getenv(serverVariable) != "":
		beServer(os.Getenv(serverVariable))
	}
	if err := flag.Set("test.parallel", "4"); err != nil { // they wait more than they work
		panic(err)
	}
	os.Exit(m.Run())
}

// node is a server of a cluster, as a process.
type node struct {
	Name   string
	Dir    string
	Port   int
	Route  int
	Routes []string // none: it stands alone
	// Where it says that clients and other nodes reach it, "" for where it listens.
	ForClients, ForNodes string

	process *exec.Cmd
}

// beNode is the process of a node. It does not return.
func beNode(config string) {
	var n node
	if err := json.Unmarshal([]byte(config), &n); err != nil {
		panic(err)
	}
	o := &server.Options{
		ServerName: n.Name, Host: "127.0.0.1", Port: n.Port, JetStream: true, StoreDir: n.Dir, SyncAlways: true,
		MaxPayload: 8 << 20, NoLog: true, ClientAdvertise: n.ForClients,
	}
	if len(n.Routes) > 0 {
		o.Cluster = server.ClusterOpts{Name: "memorymark-test", Host: "127.0.0.1", Port: n.Route, Advertise: n.ForNodes}
	}
	for _, r := range n.Routes {
		u, err := url.Parse(r)
		if err != nil {
			panic(err)
		}
		o.Routes = append(o.Routes, u)
	}
	s, err := server.NewServer(o)
	if err != nil {
		panic(err)
	}
	s.Start()
	s.WaitForShutdown()
}

func (n *node) start(t testing.TB) {
	t.Helper()
	config, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	n.process = self(t, nodeVariable+"="+string(config))
	if err := n.process.Start(); err != nil {
		t.Fatal(err)
	}
}

// self returns this test binary as another process.
func self(t testing.TB, variable string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program)
	c.Env = append(os.Environ(), variable)
	c.Stderr = os.Stderr
	return c
}

// end ends a node: by SIGKILL at once, by SIGTERM after it has handed over.
func (n *node) end(how os.Signal) {
	n.process.Process.Signal(how)
	n.process.Wait()
}

type cluster []*node

// newCluster starts three nodes and waits until they have a leader.
func newCluster(t testing.TB) cluster {
	t.Helper()
	ports := freePorts(t, 6)
	dir := t.TempDir()
	var c cluster
	var routes []string
	for i := range 3 {
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", ports[3+i]))
	}
	for i := range 3 {
		name := fmt.Sprintf("n%d", i)
		c = append(c, &node{Name: name, Dir: filepath.Join(dir, name), Port: ports[i], Route: ports[3+i], Routes: routes})
	}
	for _, n := range c {
		n.start(t)
		t.Cleanup(func() { n.end(os.Kill) })
	}
	c.wait(t)
	return c
}

func freePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

func (c cluster) url() string {
	var urls []string
	for _, n := range c {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", n.Port))
	}
	return strings.Join(urls, ",")
}

// wait waits until every stream has all its replicas, up to date.
func (c cluster) wait(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for wait := time.Second; ; wait *= 2 { // a slow node needs more, and a dead one never answers
		if err := c.healthy(ctx, wait); err == nil {
			return
		} else if ctx.Err() != nil {
			t.Fatalf("the cluster does not get well: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// healthy asks each node, and waits so long for it.
func (c cluster) healthy(ctx context.Context, wait time.Duration) error {
	for _, n := range c {
		conn, err := nats.Connect(fmt.Sprintf("nats://127.0.0.1:%d", n.Port))
		if err != nil {
			return err
		}
		defer conn.Close()
		js, err := jetstream.New(conn)
		if err != nil {
			return err
		}
		once, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		if _, err := js.AccountInfo(once); err != nil {
			return err
		}
		streams := js.ListStreams(once)
		for s := range streams.Info() {
			if s.Cluster == nil || s.Cluster.Leader == "" {
				return fmt.Errorf("%s has no leader", s.Config.Name)
			}
			for _, r := range s.Cluster.Replicas {
				if !r.Current || r.Offline {
					return fmt.Errorf("%s: %s is behind", s.Config.Name, r.Name)
				}
			}
		}
		if streams.Err() != nil {
			return streams.Err()
		}
	}
	return nil
}

func openCluster(t testing.TB, c cluster, lease time.Duration) *Queue {
	t.Helper()
	q, err := Open(t.Context(), Config{URL: c.url(), Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	return q
}

func TestConformanceCluster(t *testing.T) {
	q := openCluster(t, newCluster(t), testLease)
	info, err := q.queue.Info(t.Context())
	if err != nil || info.Config.Replicas != clusterReplicas {
		t.Fatalf("the queue has %d replicas, %v", info.Config.Replicas, err)
	}
	exercise(t, q)
}

// TestClusterLosesANode ends each node in turn, or two in the short form, under load,
// and compares what was acknowledged with what is there.
func TestClusterLosesANode(t *testing.T) {
	c := newCluster(t)
	q := openCluster(t, c, briefLease)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	load := startLoad(ctx, t, q)
	for _, how := range []os.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for _, n := range c[:inFull(len(c), 1)] {
			load.settle(t)
			began := time.Now()
			n.end(how)
			submitted, finished := load.resume()
			t.Logf("%s %v: a job was accepted after %v and one finished after %v", n.Name, how,
				submitted.Sub(began).Round(time.Millisecond), finished.Sub(began).Round(time.Millisecond))
			n.start(t)
			c.wait(t)
		}
	}
	load.check(t)
}

// loadStreams is how many submit jobs and how many do them at the same time.
const loadStreams = 2

// load submits jobs and does them, as fast as the engine lets it.
type load struct {
	q        *Queue
	ctx      context.Context
	stop     context.CancelFunc
	running  sync.WaitGroup
	mu       sync.Mutex
	accepted []string
	finished atomic.Int64
}

func startLoad(ctx context.Context, t *testing.T, q *Queue) *load {
	t.Helper()
	l := &load{q: q}
	l.ctx, l.stop = context.WithCancel(ctx)
	link := newHand(ctx, t, q, "t4")
	for i := range loadStreams {
		l.running.Go(func() { l.submit(i) })
		l.running.Go(func() { l.work(link) })
	}
	t.Cleanup(l.stop)
	return l
}

func (l *load) submit(stream int) {
	for i := 0; l.ctx.Err() == nil; i++ {
		j, _, err := l.q.Submit(l.ctx, Request{Card: "t4", Payload: json.RawMessage(fmt.Sprintf("[%d,%d]", stream, i))})
		if err == nil {
			l.mu.Lock()
			l.accepted = append(l.accepted, j.ID)
			l.mu.Unlock()
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (l *load) work(link *hand) {
	for l.ctx.Err() == nil {
		lease, err := link.take(l.ctx)
		if err != nil || lease == nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), patience)
		l.running.Go(func() { keep(ctx, lease) })
		if lease.succeed(ctx, string(lease.job.Payload)) == nil {
			l.finished.Add(1)
		}
		cancel()
	}
}

// keep sends heartbeats, as a worker does while it reports a job.
func keep(ctx context.Context, lease *held) {
	for ctx.Err() == nil {
		once, cancel := context.WithTimeout(ctx, briefLease/3)
		_ = lease.beat(once) // the report tells what became of the lease
		<-once.Done()
		cancel()
	}
}

func (l *load) count() (accepted int, finished int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.accepted), l.finished.Load()
}

// settle waits until the load flows.
func (l *load) settle(t *testing.T) {
	t.Helper()
	accepted, finished := l.count()
	for {
		a, f := l.count()
		if a >= accepted+20 && f >= finished+20 {
			return
		}
		if l.ctx.Err() != nil {
			t.Fatal("the load does not flow")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// resume waits until the load flows again, both at its beginning and at its
// end, and says since when. What was under way does not count.
func (l *load) resume() (submitted, done time.Time) {
	accepted, finished := l.count()
	for l.ctx.Err() == nil {
		a, f := l.count()
		if submitted.IsZero() && a > accepted+loadStreams {
			submitted = time.Now()
		}
		if done.IsZero() && f > finished+loadStreams {
			done = time.Now()
		}
		if !submitted.IsZero() && !done.IsZero() {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	return submitted, done
}

// check stops the load and fails if a job that was accepted is not there with
// its result, in time.
func (l *load) check(t *testing.T) {
	t.Helper()
	link := newHand(t.Context(), t, l.q, "t4")
	l.stop()
	l.running.Wait()
	rest := &load{q: l.q}
	rest.ctx, rest.stop = context.WithCancel(t.Context())
	rest.running.Go(func() { rest.work(link) })
	for _, id := range l.accepted {
		mustSucceed(t, l.q, id)
	}
	rest.stop()
	rest.running.Wait()
	t.Logf("all %d accepted jobs are there with their results", len(l.accepted))
}

// mustSucceed waits until a job has succeeded with the result that it was
// given. It has patience with each: how many there are depends on the machine.
func mustSucceed(t *testing.T, q *Queue, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	j, err := q.Wait(ctx, id)
	if err != nil || j.State != Succeeded {
		t.Fatalf("job %s was accepted and is %+v, %v", id, j, err)
	}
	result, err := q.Result(ctx, id)
	if err != nil || string(result) != string(j.Payload) {
		t.Fatalf("result of %s: %s instead of %s, %v", id, result, j.Payload, err)
	}
}
