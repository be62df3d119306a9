package participant

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"github.com/coterie-fl/coterie/federation/federationtest"
	"github.com/coterie-fl/coterie/federation/transfer"
	"github.com/coterie-fl/coterie/federation/wire"
)

// oddSender is a server that sends a broadcast as it likes.
type oddSender struct {
	wire.UnimplementedFederationHandler
	send func(offset int64, out *connect.ServerStream[wire.Part]) error
}

func (s oddSender) Broadcast(_ context.Context, q *wire.BroadcastRequest, out *connect.ServerStream[wire.Part]) error {
	return s.send(q.GetOffset(), out)
}

// pipeline carries calls in memory, and replies piece by piece as they are written.
type pipeline struct {
	handler http.Handler
	away    func() bool
}

func (p pipeline) Do(q *http.Request) (*http.Response, error) {
	if p.away() {
		return nil, errors.New("connection lost")
	}
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	r := q.Clone(q.Context())
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), -1
	r.Proto, r.ProtoMajor, r.ProtoMinor, r.RequestURI = "HTTP/2.0", 2, 0, q.URL.Path
	reader, writer := io.Pipe()
	context.AfterFunc(q.Context(), func() { reader.CloseWithError(context.Cause(q.Context())) })
	w := &pipeWriter{header: http.Header{}, out: writer, begun: make(chan struct{})}
	go func() {
		p.handler.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK)
		writer.Close()
	}()
	select {
	case <-w.begun:
	case <-q.Context().Done():
		return nil, context.Cause(q.Context())
	}
	return &http.Response{StatusCode: w.status, Header: w.header.Clone(), Body: reader, Proto: "HTTP/2.0", ProtoMajor: 2, Request: q}, nil
}

type pipeWriter struct {
	header http.Header
	out    *io.PipeWriter
	status int
	begun  chan struct{}
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) Flush() {}

func (w *pipeWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
		close(w.begun)
	}
}

func (w *pipeWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.out.Write(b)
}

// TestNoDownloadHoldsAParticipant: a server cannot keep a participant busy by sending
// nothing, or next to nothing. An honest one over a slow line, that is away for an hour
// in between, gets its bytes through.
func TestNoDownloadHoldsAParticipant(t *testing.T) {
	content := make([]byte, 3<<20)
	for i := range content {
		content[i] = byte(i >> 10)
	}
	sum := sha256.Sum256(content)
	tick := func(out *connect.ServerStream[wire.Part], offset int64, n int, every time.Duration) error {
		time.Sleep(every)
		return out.Send(transfer.NewPart(offset, content[offset:min(offset+int64(n), int64(len(content)))]))
	}
	for name, c := range map[string]struct {
		send    func(offset int64, out *connect.ServerStream[wire.Part]) error
		refused transfer.Reason // empty: the bytes come through
		within  time.Duration
	}{
		"empty parts": {func(offset int64, out *connect.ServerStream[wire.Part]) error {
			for {
				if err := tick(out, offset, 0, time.Second); err != nil {
					return err
				}
			}
		}, transfer.ReasonMalformed, time.Minute},
		"a byte now and then": {func(offset int64, out *connect.ServerStream[wire.Part]) error {
			for ; ; offset++ {
				if err := tick(out, offset, 1, 20*time.Second); err != nil {
					return err
				}
			}
		}, transfer.ReasonMalformed, fetchTime(int64(len(content))) + time.Minute},
		"a byte on each connection": {func(offset int64, out *connect.ServerStream[wire.Part]) error {
			return tick(out, offset, 1, 0)
		}, transfer.ReasonMalformed, fetchTime(int64(len(content))) + time.Minute},
		"a byte, and then silence": {func(offset int64, out *connect.ServerStream[wire.Part]) error {
			if err := tick(out, offset, 1, 0); err != nil {
				return err
			}
			time.Sleep(time.Hour)
			return nil
		}, transfer.ReasonMalformed, fetchTime(int64(len(content))) + time.Minute},
		"a slow line": {func(offset int64, out *connect.ServerStream[wire.Part]) error {
			for sent := 0; offset < int64(len(content)) && sent < 40; sent++ { // and it breaks
				if err := tick(out, offset, 20<<10, time.Second); err != nil {
					return err
				}
				offset += 20 << 10
			}
			return nil
		}, "", 2 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, cancel := context.WithTimeout(context.Background(), 24*time.Hour)
				defer cancel()
				_, service := wire.NewFederationHandler(oddSender{send: c.send})
				away := func() bool { // for an hour, in the middle of the slow line
					since := time.Since(began)
					return since > time.Minute && since < time.Hour && c.refused == ""
				}
				client := wire.NewFederationClient(pipeline{service, away}, "http://server", connect.WithAcceptCompression("gzip", nil, nil))
				got, err := fetch(ctx, client, federationtest.Quiet(), "run", &wire.Content{Size: int64(len(content)), Sha256: sum[:]}, int64(len(content)))
				if transfer.ReasonOf(err) != c.refused || (c.refused == "") != bytes.Equal(got, content) {
					t.Errorf("%d bytes, %v; want reason %q", len(got), err, c.refused)
				}
				if c.refused != "" && c.within > 2*time.Minute && !errors.Is(err, errSlow) {
					t.Errorf("%v; want %v", err, errSlow)
				}
				if took := time.Since(began); took > c.within {
					t.Errorf("it took %v; at most %v are allowed", took, c.within)
				}
				cancel()
				time.Sleep(2 * time.Hour) // what the server still sleeps
			})
		})
	}
}
