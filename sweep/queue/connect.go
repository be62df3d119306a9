// Package queue hands cells to workers over NATS JetStream: a work queue, results in the key-value store, files in the object store.
package queue

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options say where the queue is, who may use it, and which program's cells are in it.
type Options struct {
	URL       string // of the servers, separated by commas
	Creds     string // file with a user's credentials, as nsc writes it
	TokenFile string // file that holds a token
	NKey      string // file with the seed of a user's nkey
	User      string // with the password that PasswordFile holds
	// PasswordFile holds User's password. One in the URL does, too, and is shown nowhere.
	PasswordFile string
	CA           string // file with the authority's certificate; empty: the system's
	Cert, Key    string // files with the own certificate and its key
	Name         string // of the queue among others on the same servers; empty: coterie
	Replicas     int    // of what is stored; 0: three in a cluster, one elsewhere
	// Lease is how long a cell may be with a worker that does not say that it is alive.
	Lease time.Duration
	Code  Code
	// Log takes up what goes wrong and is tried again.
	Log func(format string, args ...any)
}

// Code is the program whose results are meant: another one may give other bytes.
type Code struct {
	Version string `json:"version"`
	Kernel  string `json:"kernel"`
	Build   string `json:"build,omitempty"` // hash of the program, where the version does not name its code
}

// String is for people.
func (c Code) String() string {
	text := fmt.Sprintf("version %s, kernel %s", c.Version, c.Kernel)
	if c.Build != "" {
		text += ", build " + c.Build
	}
	return text
}

// name is a word for subjects and keys.
func (c Code) name() string { return hash([]byte(c.String()))[:16] }

func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// usualLease is long enough for a machine that swaps, short enough to wait for.
const usualLease = 30 * time.Second

// link is a connection to a queue's servers.
type link struct {
	Options
	nc      *nats.Conn
	js      jetstream.JetStream
	sending sync.Mutex // of files
}

// connect reaches the servers.
func connect(o Options, more ...nats.Option) (*link, error) {
	if o.Name == "" {
		o.Name = "coterie"
	}
	if o.Lease <= 0 {
		o.Lease = usualLease
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	settings, err := o.access()
	if err != nil {
		return nil, err
	}
	settings = append(settings,
		nats.Name("coterie "+o.Code.Version), nats.MaxReconnects(-1), nats.ReconnectWait(250*time.Millisecond), nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		nats.Timeout(5*time.Second), nats.PingInterval(10*time.Second), nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				o.Log("the queue's server is gone (%v): looking for it", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) { o.Log("the queue is there again, at %s", nc.ConnectedAddr()) }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // each caller hears of its own
	)
	nc, err := nats.Connect(o.URL, append(settings, more...)...)
	if err != nil {
		return nil, o.unreached(err)
	}
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(10*time.Second))
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("queue: %w", err)
	}
	return &link{Options: o, nc: nc, js: js}, nil
}

// token reads the secret of an embedded server, or makes one.
func token(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err == nil && len(strings.TrimSpace(string(text))) >= 32 {
		return strings.TrimSpace(string(text)), nil
	}
	fresh := rand.Text() + rand.Text()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", err
	}
	return fresh, os.WriteFile(file, []byte(fresh+"\n"), 0o600)
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
