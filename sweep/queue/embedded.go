package queue

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/coterie-fl/coterie/internal/durable"
)

// Embedded is a queue with a server of its own, in this process.
type Embedded struct {
	*Queue
	Address   string // where it listens
	TokenFile string // what workers need beside it
	server    *server.Server
	lock      *os.File
}

// Embed starts a server on an address, whose store is a folder that a later call goes on
// with. Workers need its token; beyond this machine the way there has to be encrypted.
func Embed(ctx context.Context, listen, folder string, o Options) (*Embedded, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: want HOST:PORT, for example 127.0.0.1:4222: %w", listen, err)
	}
	number, err := strconv.Atoi(port)
	if err != nil || number < 0 || number > 65535 {
		return nil, fmt.Errorf("--listen %s: %q is no port; want 0 (any) to 65535", listen, port)
	}
	if number == 0 {
		number = server.RANDOM_PORT
	}
	if ip := net.ParseIP(host); o.Cert == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("--listen %s is open to other machines, and what travels there tells of the data: give --nats-cert and --nats-key, or listen on 127.0.0.1 and reach it through a tunnel", listen)
	}
	e := &Embedded{TokenFile: filepath.Join(folder, "token")}
	secret, err := token(e.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	if e.lock, err = os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, fmt.Errorf("queue: %w", err)
	}
	if err := durable.LockExclusive(e.lock); err != nil {
		e.lock.Close()
		return nil, fmt.Errorf("another process has its queue in %s (%w): wait for it, or choose another --out", folder, err)
	}
	settings := &server.Options{
		ServerName: "coterie", Host: host, Port: number, NoSigs: true, NoLog: true, Authorization: secret,
		JetStream: true, StoreDir: folder, JetStreamMaxMemory: 64 << 20,
	}
	if err := e.start(ctx, settings, secret, o); err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

func (e *Embedded) start(ctx context.Context, settings *server.Options, secret string, o Options) (err error) {
	if o.Cert != "" {
		pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return fmt.Errorf("--nats-cert: %w", err)
		}
		settings.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}}
		if o.CA != "" { // then workers show a certificate of it, too
			if settings.TLSConfig.ClientCAs, err = authority(o.CA); err != nil {
				return err
			}
			settings.TLSConfig.ClientAuth = tls.RequireAndVerifyClientCert
		}
		settings.TLSTimeout = 5
	}
	if e.server, err = server.NewServer(settings); err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	go e.server.Start()
	if !e.server.ReadyForConnections(10 * time.Second) {
		return fmt.Errorf("the embedded queue does not come up on %s: is the port taken, or the disk full?", net.JoinHostPort(settings.Host, strconv.Itoa(settings.Port)))
	}
	e.Address = e.server.Addr().String()
	inside := o // the connection within the process needs no certificate
	inside.URL, inside.Creds, inside.TokenFile, inside.CA, inside.Cert, inside.Key = e.server.ClientURL(), "", "", "", "", ""
	l, err := connect(inside, nats.InProcessServer(e.server), nats.Token(secret))
	if err != nil {
		return err
	}
	if e.Queue, err = open(ctx, l); err != nil {
		l.nc.Close()
	}
	return err
}

// Close ends the server. What waits in its folder goes on waiting.
func (e *Embedded) Close() {
	if e.Queue != nil {
		e.Queue.Close()
	}
	if e.server != nil {
		e.server.Shutdown()
		e.server.WaitForShutdown()
	}
	e.lock.Close()
}
