package federation_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/coterie-fl/coterie/federation/participant"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
)

// stranger knows the server's address, and nothing else.
func stranger() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}
}

// keep holds a connection open as long as the server lets it: it answers pings, as a
// client that is well does.
func keep(c net.Conn) {
	defer c.Close()
	f := http2.NewFramer(c, c)
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				err = f.WritePing(true, frame.Data)
			}
		}
		if err != nil {
			return
		}
	}
}

// crowd keeps so many connections open without end, coming back whenever the server
// closes one, and returns when all have been there once.
func (b *besieged) crowd(n int, dial func(context.Context) (net.Conn, error)) (leave func()) {
	ctx, cancel := context.WithCancel(b.assault)
	var all, first sync.WaitGroup
	first.Add(n)
	for range n {
		all.Go(func() {
			there := sync.OnceFunc(first.Done)
			defer there()
			for ctx.Err() == nil {
				short, end := context.WithTimeout(ctx, 5*time.Second)
				c, err := dial(short)
				end()
				there()
				if err != nil {
					_ = transfer.Wait(ctx, nil, 200*time.Millisecond)
					continue
				}
				cut := context.AfterFunc(ctx, func() { c.Close() })
				keep(c)
				cut()
				_ = transfer.Wait(ctx, nil, 200*time.Millisecond)
			}
		})
	}
	first.Wait()
	return func() { cancel(); all.Wait() }
}

// TestHostileStrangers: 198 connections without a certificate locked everybody else
// out. Limits.Connections is 200 there; here it is 20, and the crowd is larger.
func TestHostileStrangers(t *testing.T) {
	var d net.Dialer
	for name, dial := range map[string]func(b *besieged) func(context.Context) (net.Conn, error){
		"with a handshake": func(b *besieged) func(context.Context) (net.Conn, error) {
			return func(ctx context.Context) (net.Conn, error) {
				c, err := (&tls.Dialer{NetDialer: &d, Config: stranger()}).DialContext(ctx, "tcp", b.server)
				if err != nil {
					return nil, err
				}
				if _, err = c.Write([]byte(http2.ClientPreface)); err == nil {
					err = http2.NewFramer(c, c).WriteSettings()
				}
				return c, err
			}
		},
		"without a word": func(b *besieged) func(context.Context) (net.Conn, error) {
			return func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", b.server) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := besiege(t)
			leave := b.crowd(300, dial(b))
			defer leave()
			b.holdsOut()
		})
	}
}

// TestHostileMemberConnections: one participant's connections, however many, are not
// everybody's.
func TestHostileMemberConnections(t *testing.T) {
	b := besiege(t)
	config, err := b.west.member.ClientTLS()
	if err != nil {
		t.Fatal(err)
	}
	config.NextProtos = []string{"h2"}
	var d net.Dialer
	leave := b.crowd(60, func(ctx context.Context) (net.Conn, error) {
		c, err := (&tls.Dialer{NetDialer: &d, Config: config}).DialContext(ctx, "tcp", b.server)
		if err != nil {
			return nil, err
		}
		if _, err = c.Write([]byte(http2.ClientPreface)); err == nil {
			err = http2.NewFramer(c, c).WriteSettings()
		}
		return c, err
	})
	defer leave()
	b.holdsOut()
}

// TestHostileResets: streams that are opened and reset without end (CVE-2023-44487).
func TestHostileResets(t *testing.T) {
	b := besiege(t)
	ctx, cancel := context.WithCancel(b.assault)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				resetStreams(ctx, b.server)
			}
		})
	}
	defer func() { cancel(); wg.Wait() }()
	b.holdsOut()
}

// resetStreams until the server ends the connection.
func resetStreams(ctx context.Context, server string) {
	c, err := (&tls.Dialer{Config: stranger()}).DialContext(ctx, "tcp", server)
	if err != nil {
		_ = transfer.Wait(ctx, nil, 100*time.Millisecond)
		return
	}
	defer context.AfterFunc(ctx, func() { c.Close() })()
	go keep(c)
	var head bytes.Buffer
	e := hpack.NewEncoder(&head)
	for _, field := range [][2]string{
		{":method", "POST"}, {":scheme", "https"}, {":authority", "x"}, {":path", wire.FederationEnrolProcedure}, {"content-type", "application/proto"},
	} {
		_ = e.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}) // a buffer
	}
	f := http2.NewFramer(c, c)
	if _, err := c.Write([]byte(http2.ClientPreface)); err != nil || f.WriteSettings() != nil {
		return
	}
	block := bytes.Clone(head.Bytes())
	for id := uint32(1); ; id += 2 {
		if f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true}) != nil ||
			f.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
			return
		}
	}
}

// TestHostileEnrolments: wrong invitations without end are refused, and a few lines
// tell of them all.
func TestHostileEnrolments(t *testing.T) {
	b := besiege(t)
	ctx, cancel := context.WithCancel(b.assault)
	var wg sync.WaitGroup
	for range 8 {
		client, transport := participant.NewClient(b.server, stranger(), nil)
		defer transport.CloseIdleConnections()
		wg.Go(func() {
			for ctx.Err() == nil {
				_, _ = client.Enrol(ctx, &wire.EnrolRequest{Token: "coterie-invite-\n{\"level\":\"ERROR\"}\x1b[31m", SigningRequest: []byte("x")})
			}
		})
	}
	b.holdsOut()
	cancel()
	wg.Wait()
	words := b.words.String()
	if lines := strings.Count(words, "enrolment refused"); lines == 0 || lines > 10 {
		t.Errorf("%d lines tell of refused enrolments; want a few", lines)
	}
	if strings.Contains(words, "\x1b") {
		t.Error("what a stranger says stands in the log as it is")
	}
}
