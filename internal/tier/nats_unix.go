//go:build unix

package tier

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Cluster is three NATS servers with JetStream, processes of their own on this machine.
type Cluster struct {
	URL string // all of them

	t       testing.TB
	program string
	files   [3]string
	ports   [3]int
	nodes   [3]*exec.Cmd // nil: not running
}

// NATSCluster starts a cluster whose nodes keep their stores under folders, or leaves the
// test out. An empty folder is one of the test's own.
func NATSCluster(t testing.TB, folders [3]string) *Cluster {
	t.Helper()
	program, err := exec.LookPath("nats-server")
	if err != nil {
		LeaveOut(t, NATS, err)
	}
	c := &Cluster{t: t, program: program}
	var routes, urls []string
	var inner [3]int
	for i := range c.nodes {
		c.ports[i], inner[i] = freePort(t), freePort(t)
		routes = append(routes, fmt.Sprintf("nats://127.0.0.1:%d", inner[i]))
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", c.ports[i]))
	}
	c.URL = strings.Join(urls, ",")
	for i := range c.nodes {
		if folders[i] == "" {
			folders[i] = t.TempDir()
		}
		text := fmt.Sprintf("server_name: n%d\nlisten: \"127.0.0.1:%d\"\njetstream { store_dir: %q }\ncluster { name: coterie, listen: \"127.0.0.1:%d\", routes: [%s] }\n",
			i+1, c.ports[i], folders[i], inner[i], strings.Join(routes, ", "))
		c.files[i] = filepath.Join(t.TempDir(), "nats.conf")
		if err := os.WriteFile(c.files[i], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c.Start(i)
	}
	t.Cleanup(func() {
		for i := range c.nodes {
			c.Kill(i)
		}
	})
	for i := range c.ports {
		await(t, c.ports[i])
	}
	time.Sleep(2 * time.Second) // until they have chosen who leads
	return c
}

// NATSServer starts one server with JetStream and its store in a folder, or leaves the test
// out.
func NATSServer(t testing.TB, folder string) (url string) {
	t.Helper()
	return "nats://" + NATSConfigured(t, folder, "")
}

// NATSConfigured starts one such server with further settings of its file: TLS, accounts.
func NATSConfigured(t testing.TB, folder, settings string) (address string) {
	t.Helper()
	program, err := exec.LookPath("nats-server")
	if err != nil {
		LeaveOut(t, NATS, err)
	}
	port := freePort(t)
	address = fmt.Sprintf("127.0.0.1:%d", port)
	file := filepath.Join(t.TempDir(), "nats.conf")
	text := fmt.Sprintf("listen: %q\njetstream { store_dir: %q }\n%s\n", address, folder, settings)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-c", file, "-l", file+".log")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if log, err := os.ReadFile(file + ".log"); t.Failed() && err == nil {
			t.Logf("the NATS server says: %.3000s", log)
		}
	})
	await(t, port)
	return address
}

// Start starts a node, or starts it again.
func (c *Cluster) Start(i int) {
	c.t.Helper()
	c.nodes[i] = exec.Command(c.program, "-c", c.files[i], "-l", c.files[i]+".log")

	if err := c.nodes[i].Start(); err != nil {
		c.t.Fatal(err)
	}
}

// Kill ends a node as a power cut does.
func (c *Cluster) Kill(i int) {
	if c.nodes[i] != nil {
		_ = c.nodes[i].Process.Kill()
		_ = c.nodes[i].Wait()
		c.nodes[i] = nil
	}
}

// freePort is one that nobody listens on.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func await(t testing.TB, port int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a NATS server does not come up: %v", err)
		}
	}
}
